"""Penstock on Spark: engines in the cells of a streaming query.

>>> import penstock.spark
>>> spark = penstock.spark.session()                        # doctest: +SKIP
>>> results = penstock.spark.join(query, {"A": a, "B": b})  # doctest: +SKIP
"""

import sys

# The worker daemon, started with `python -m`, has to choose its pyspark before anything loads it.
if "penstock.spark.worker_daemon" not in sys.orig_argv:
    from penstock.cells.placement import Placement, place
    from penstock.cells.survey import Survey, survey
    from penstock.spark.arrow_types import arrow_schema
    from penstock.spark.cell_report import CellReport, cell_reports
    from penstock.spark.join import join, placement_of
    from penstock.spark.session import check_session, session

__all__ = [
    "CellReport",
    "Placement",
    "Survey",
    "arrow_schema",
    "cell_reports",
    "check_session",
    "join",
    "place",
    "placement_of",
    "session",
    "survey",
]

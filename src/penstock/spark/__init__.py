"""Penstock on Spark: engines in the cells of a streaming query.

>>> import penstock.spark
>>> spark = penstock.spark.session()                        # doctest: +SKIP
>>> results = penstock.spark.join(query, {"A": a, "B": b})  # doctest: +SKIP
"""

import sys

# Programs started with `python -m` that need a module of the package, not all of it: the parent of
# workers has to choose its pyspark before anything loads it, and the other one is Spark's, which
# asks an operator for its state variables.
_BARE = (
    "penstock.spark.processes.worker_daemon",
    "pyspark.sql.streaming.transform_with_state_driver_worker",
)

if not any(program in sys.orig_argv for program in _BARE):
    from penstock.cells.placement import Placement, place
    from penstock.cells.survey import Survey, survey
    from penstock.spark.cells.cell_report import CellReport, cell_reports
    from penstock.spark.data_source.source import register
    from penstock.spark.explain import explain
    from penstock.spark.jobs.side_sinks import split
    from penstock.spark.join import join, placement_of
    from penstock.spark.rows.arrow_types import arrow_schema
    from penstock.spark.session import check_session, session
    from penstock.spark.state.static_refresh import refresh

__all__ = [
    "CellReport",
    "Placement",
    "Survey",
    "arrow_schema",
    "cell_reports",
    "check_session",
    "explain",
    "join",
    "place",
    "placement_of",
    "refresh",
    "register",
    "session",
    "split",
    "survey",
]

"""Penstock on Spark: engines in the cells of a streaming query.

>>> import penstock.spark
>>> spark = penstock.spark.session()                        # doctest: +SKIP
>>> results = penstock.spark.join(query, {"A": a, "B": b})  # doctest: +SKIP
"""

from penstock.spark.arrow_types import arrow_schema
from penstock.spark.join import join, placement_of
from penstock.spark.placement import Placement, place
from penstock.spark.session import check_session, session

__all__ = ["Placement", "arrow_schema", "check_session", "join", "place", "placement_of", "session"]

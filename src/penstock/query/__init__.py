"""CQL text to a validated join graph."""

from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse

__all__ = ["JoinGraph", "parse"]

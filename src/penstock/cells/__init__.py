"""Cells: how the tuples of one query are spread over many engines, and packed for the way there.

Which cells there are and which tuples each of them gets is a matter of the query and the data, not
of the host: nothing here knows Spark. :mod:`penstock.spark` puts an engine into every cell.
"""

from penstock.cells.packing import Packer
from penstock.cells.placement import Placement, place
from penstock.cells.router import Router
from penstock.cells.survey import Survey, survey

__all__ = ["Packer", "Placement", "Router", "Survey", "place", "survey"]

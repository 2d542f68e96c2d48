"""What to do with too little CPU: which half-way joins get how many probes. Pure functions.

All tuples are inserted and purged; only probes are limited. Mukherji et al., JAQPOT: join direction
adaptation that keeps results fresh, is the base of it.
"""

from penstock.overload.allocation import Allocation, Allowance
from penstock.overload.allocators import ALLOCATORS, allocate
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.path_model import PathModel, observed_model, path_model
from penstock.overload.path_table import path_table
from penstock.overload.shortfall import Shortfall
from penstock.overload.workload import Workload

__all__ = [
    "ALLOCATORS",
    "Allocation",
    "Allowance",
    "HalfWayJoin",
    "PathModel",
    "Shortfall",
    "Workload",
    "allocate",
    "observed_model",
    "path_model",
    "path_table",
]

"""The immutable plan tree and its notation.

``penstock.plan`` is this package and also the planner of the public API:
``penstock.plan(query, statistics, limits)``. Importing a submodule binds it as an attribute of its
parent, whatever the parent had under that name, so the only name that survives every order of
imports is a package that can be called. The call goes to the planners by name: they import this
package, not the other way round.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from penstock.plan.notation import read
from penstock.plan.plan import Join, Leaf, Node, Plan, block_of, walk, write
from penstock.plan.stream_set import StreamSet

__all__ = ["Join", "Leaf", "Node", "Plan", "StreamSet", "block_of", "read", "walk", "write"]


class _CallablePackage(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Plan:
        """See :func:`penstock.planning.planner.plan`."""
        found: Plan = import_module("penstock.planning.planner").plan(*arguments, **options)
        return found


sys.modules[__name__].__class__ = _CallablePackage

"""What people have ordered about the plan of a running job, and how it reaches the cells.

Cells run in Python workers of Spark, and nobody can call them. So orders are written to a small
file in the checkpoint folder, and every cell reads it at the beginning of every micro-batch: *pin*
a plan, *undo* the last change, *unpin*. An order has a number, and a cell keeps the number of the
last one that it has obeyed with each entry of its history
(:mod:`penstock.spark.state.cell_history`). So an order is obeyed once; a cell that is made anew
obeys those of the past in their places; and a pin survives every restart.

Cells may read an order in different batches, a batch that is tried again may see one more than the
time before, and a file that cannot be read holds no orders. None of that can change an answer or
make it leave twice, since answers do not depend on plans: an order is advice about cost.

The file is replaced as a whole, so a reader sees all of an order or nothing. Orders belong to the
plan that the job file gives: with another one there, they are void.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.engine import Engine
from penstock.errors import OptionError, PenstockError
from penstock.spark.state.checkpoint_files import CheckpointFiles

NAME = "penstock.orders.json"
KEPT = 256
"""So many orders are kept: more than anybody gives between two bases of a cell."""
_VERSION = 1

OrderKind: TypeAlias = Literal["pin", "undo", "unpin"]
ORDERS: tuple[OrderKind, ...] = get_args(OrderKind)


@dataclass(frozen=True, slots=True)
class PlanOrder:
    """One order; only ``pin`` has a ``plan``."""

    number: int
    order: OrderKind
    plan: str = ""


@dataclass(frozen=True, slots=True)
class PlanOrders:
    """All orders for a job whose file says ``plan``, the oldest first; ``last`` is their number."""

    plan: str = "auto"
    last: int = 0
    orders: tuple[PlanOrder, ...] = ()

    @classmethod
    def read(cls, files: CheckpointFiles | None) -> PlanOrders:
        """The orders among ``files``; none if there are none, or they cannot be read."""
        try:
            values = json.loads(files.read(NAME)) if files is not None else None
            if values is None or values.pop("version") != _VERSION:
                return cls()
            orders = tuple(PlanOrder(**each) for each in values.pop("orders"))
            return cls(orders=orders, **values)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls()

    def write(self, files: CheckpointFiles) -> None:
        """Replace those among ``files``; they are durable when this returns."""
        files.write(NAME, f"{json.dumps({'version': _VERSION, **asdict(self)})}\n".encode())

    def given(self, plan: str) -> PlanOrders:
        """The orders that count for a job whose file says ``plan``."""
        return self if plan == self.plan else PlanOrders(plan, self.last)

    def with_order(self, order: OrderKind, plan: str, at: float) -> PlanOrders:
        """One more, given at ``at`` seconds of the clock: numbers grow even if a file was lost."""
        number = max(self.last + 1, int(1000 * at))
        orders = (*self.orders, PlanOrder(number, order, plan))[-KEPT:]
        return replace(self, last=number, orders=orders)

    def between(self, after: int, upto: int | None = None) -> tuple[PlanOrder, ...]:
        """Those with numbers behind ``after``, up to and with ``upto``."""
        last = self.last if upto is None else upto
        return tuple(each for each in self.orders if after < each.number <= last)

    def hold(self, number: int) -> bool:
        """Whether some order up to ``number`` is there, so that the job file's plan is not."""
        return any(each.number <= number for each in self.orders)


def checked_order(command: Mapping[str, str], query: Any) -> tuple[OrderKind, str]:
    """The order in ``command``; :class:`PenstockError` if it cannot be obeyed by anybody."""
    for order in ORDERS:
        if command.get("command") == order:
            plan = str(Engine(query, plan=command["plan"]).plan) if order == "pin" else ""
            return order, plan
    raise OptionError(f"{command.get('command')!r} is no order; there are: {', '.join(ORDERS)}")


def obey(engine: Engine, order: PlanOrder) -> PlanEvent | None:
    """Carry out ``order``; an event that says why, if that cannot be done."""
    try:
        if order.order == "pin":
            engine.pin(order.plan)
        elif order.order == "undo":
            engine.undo()
        else:
            engine.unpin()
    except PenstockError as error:
        plan = str(engine.plan)
        return PlanEvent("refuse", plan, plan, engine.seconds, engine.rows, str(error))
    return None

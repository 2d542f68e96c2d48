"""A query, what is known about its streams and what operations cost: one problem to be planned.

Blocks after EXCEPT are joins of their own that share the limits; so a problem is a list of blocks,
and a candidate has a shape for each. Taking tuples in, subtracting blocks, holding results and
fetching their columns cost the same under every plan; that is :attr:`Problem.fixed`.

Where a statistic is missing, something is assumed and the assumption is told
(:mod:`penstock.planning.block_reader`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.errors import OptionError
from penstock.plan.plan import Join, Leaf, Node, Plan, block_of, walk, write
from penstock.planning.block import NOTHING, Block, Cost
from penstock.planning.block_reader import PARTITIONS, BlockReader
from penstock.planning.cost_model import shape_cost
from penstock.planning.probe_orders import probe_orders
from penstock.planning.shape import Shape, join, leaf
from penstock.planning.statistics import Statistics
from penstock.planning.storage import Storage
from penstock.planning.unit_costs import UnitCosts
from penstock.query.expression import Column, streams_of
from penstock.query.join_graph import JoinGraph

FIRST_COLUMNS = 2
"""Columns of a result whose cost is part of the cost of a result."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan while it is being planned: a shape for each block, and what all of it costs."""

    shapes: tuple[Shape, ...]
    cost: Cost
    crosses: bool = False
    """Whether its joins and probe orders may bring streams together that no predicate links."""


class Problem:
    """What planners work on."""

    def __init__(
        self,
        query: JoinGraph,
        statistics: Statistics,
        costs: UnitCosts | None = None,
        storage: Storage | None = None,
        join: str = "hash",
        cross_products: bool = False,
    ) -> None:
        """``costs`` are those of the statistics, or the defaults, unless given here."""
        if join not in ("hash", "nested-loops"):
            raise OptionError(f"join={join!r} does not exist; choose from: 'hash', 'nested-loops'")
        self.query = query
        self.statistics = statistics
        self.costs = costs or statistics.costs or UnitCosts()
        self.storage = storage or Storage()
        self.join = join
        self.cross_products = cross_products
        _check_names(query, statistics)
        assumptions: dict[str, None] = {}
        self.blocks = tuple(
            BlockReader(graph, query, statistics, assumptions).read(
                self.costs, self.storage, join == "nested-loops", cross_products
            )
            for graph in query.blocks
        )
        self.assumptions = tuple(assumptions)
        """What was assumed where a statistic is missing."""
        self.fixed = self._fixed()

    @cached_property
    def crossing(self) -> Problem:
        """The same problem, with all cross products among its plans."""
        if self.cross_products:
            return self
        return Problem(
            self.query, self.statistics, self.costs, self.storage, self.join, cross_products=True
        )

    @property
    def may_cross(self) -> bool:
        """Whether :attr:`crossing` has plans that this problem has not."""
        return not self.cross_products and any(
            len(block.windows) > 2 and not block.is_clique for block in self.blocks
        )

    def evaluate(self, shapes: Sequence[Shape]) -> Candidate:
        """What ``shapes``, one for each block, cost together."""
        total = self.fixed
        for block, shape in zip(self.blocks, shapes, strict=True):
            total = total.plus(shape_cost(block, shape))
        return Candidate(tuple(shapes), total, self.cross_products)

    def price(self, plan: Plan) -> Cost:
        """What ``plan`` costs, with the best probe orders for its shape."""
        return self.evaluate(self.shapes_of(plan)).cost

    def plan_of(self, candidate: Candidate) -> Plan:
        """The plan, with probe orders for every mjoin."""
        blocks = self.crossing.blocks if candidate.crosses else self.blocks
        nodes = [_node(block, shape) for block, shape in zip(blocks, candidate.shapes, strict=True)]
        return Plan(nodes[0], tuple(nodes[1:]))

    def outline(self, candidate: Candidate) -> str:
        """The plan in the notation, without probe orders."""
        return " - ".join(
            _outline(block, shape)
            for block, shape in zip(self.blocks, candidate.shapes, strict=True)
        )

    def outline_of(self, plan: Plan) -> str:
        """The same of any plan: equal for equal shapes, however they are written."""
        return self.outline(Candidate(self.shapes_of(plan), NOTHING))

    def shapes_of(self, plan: Plan) -> tuple[Shape, ...]:
        """The shapes of ``plan``; blocks that it does not mention are single mjoins."""
        plan.check(self.query)
        roots = {block_of(node, self.query).aliases: node for node in plan.minus}
        shapes = [_shape(self.blocks[0], plan.root)]
        for block in self.blocks[1:]:
            node = roots.get(block.names)
            everyone = join(leaf(i) for i in range(len(block.windows)))
            shapes.append(everyone if node is None else _shape(block, node))
        return tuple(shapes)

    def crosses(self, plan: Plan) -> bool:
        """Whether ``plan`` joins streams that no predicate links where others could be had."""
        roots = {block_of(node, self.query).aliases: node for node in plan.minus}
        nodes = [plan.root, *(roots.get(block.names) for block in self.blocks[1:])]
        return any(
            node is not None and _crosses(block, node)
            for block, node in zip(self.blocks, nodes, strict=True)
        )

    def _fixed(self) -> Cost:
        """What every plan pays."""
        main, costs = self.blocks[0], self.costs
        cpu = memory = 0.0
        for block in self.blocks:
            cpu += costs.arrival * sum(window.arrivals for window in block.windows)
            cpu += costs.text * sum(window.arrivals * window.texts for window in block.windows)
            cpu += costs.push * self.statistics.pushes * len(block.windows)
        cpu += costs.call * self.statistics.pushes
        results = main.cardinality.rate(main.everything)
        if self.query.is_grouped:
            valued = sum(each.argument is not None for each in self.query.aggregates)
            cpu += results * (costs.group + valued * costs.aggregate)
            cpu += self._answers(results) * costs.answer
            pushes = self.statistics.pushes
            if pushes:
                cpu += pushes * -math.expm1(-2 * results / pushes) * costs.grouping
        else:
            more = max(0, len(self.query.select) - FIRST_COLUMNS)
            cpu += results * (costs.result + more * costs.column)
        for block in self.blocks[1:]:
            cardinality, everything = block.cardinality, block.everything
            cpu += cardinality.rate(everything) * (costs.insert + costs.delete)
            cpu += results * costs.probe
            # Equal answers are looked up by a hash of their columns, so these are stored as well.
            columns = len(block.windows) + len(self.query.select) + 2
            memory += self.storage.of_state(cardinality.size(everything), columns, 1, 1.0)
        memory += sum(block.values for block in self.blocks)
        if self.query.emission != "istream" or self.query.is_grouped:
            held = main.cardinality.size(main.everything)
            memory += self.storage.of_state(held, len(main.windows) + 2, 0, 1.0)
        return Cost(cpu, memory)

    def _answers(self, results: float) -> float:
        """Answers of groups per second: those that change at an instant. With a row its results
        come, and with a row they go, so many instants there are at most; one changes the groups of
        all of them, or one if these are by columns of that row."""
        groups = 1.0
        owners: frozenset[str] = frozenset()
        for each in self.query.group_by:
            known = None
            if isinstance(each, Column):
                known = self.statistics.distinct.get((each.stream, each.name))
            groups *= PARTITIONS if known is None else known
            owners |= streams_of(each)
        if self.query.emission == "rstream":
            return groups * self.statistics.pushes
        main = self.blocks[0]
        turnovers = [float(each) for each in main.cardinality.turnovers]
        changes = 0.0
        for window, turnover in zip(main.windows, turnovers, strict=True):
            if window.kept and turnover:
                with_a_row = results * turnover / sum(turnovers) / window.kept
                alike = 1.0 if owners <= {window.name} else groups
                changes += 2 * window.kept * _different(with_a_row, alike)
        instants = 1 if self.query.by_rows else 1000 * self.query.ticks_per_millisecond
        return _different(changes, groups * instants)


def _different(drawn: float, of: float) -> float:
    """How many different ones are among so many that are ``drawn``, each one ``of`` so many."""
    return of * -math.expm1(-drawn / of)


def _shape(block: Block, node: Node) -> Shape:
    if isinstance(node, Leaf):
        return leaf(block.names.index(node.stream))
    return join(_shape(block, each) for each in node.inputs)


def _outline(block: Block, shape: Shape) -> str:
    if not shape.inputs:
        return write(Leaf(block.names[shape.mask.bit_length() - 1]))
    return f"({' '.join(_outline(block, each) for each in shape.inputs)})"


def _node(block: Block, shape: Shape) -> Node:
    if not shape.inputs:
        return Leaf(block.names[shape.mask.bit_length() - 1])
    inputs = tuple(_node(block, each) for each in shape.inputs)
    orders = probe_orders(block, shape.parts).orders if len(inputs) > 2 else ()
    return Join(inputs, orders)


def _crosses(block: Block, root: Node) -> bool:
    for node in walk(root):
        if isinstance(node, Leaf):
            continue
        parts = [block.mask_of(each.streams) for each in node.inputs]
        if not block.is_allowed(block.mask_of(node.streams)):
            return True
        for start, order in enumerate(node.orders if len(parts) > 2 else ()):
            done, left = parts[start], set(range(len(parts))) - {start}
            for position in order:
                near = any(block.is_linked(done, parts[other]) for other in left)
                if near and not block.is_linked(done, parts[position]):
                    return True
                done |= parts[position]
                left.remove(position)
    return False


def _check_names(query: JoinGraph, statistics: Statistics) -> None:
    aliases = {stream.alias for block in query.blocks for stream in block.streams}
    known = aliases | set(query.sources)
    for name in (*statistics.rates, *statistics.widths, *(s for s, _ in statistics.distinct)):
        if name not in known:
            raise OptionError(f"statistics name {name}, {_not_in(query)}")
    for values in (
        statistics.selectivities,
        statistics.observed,
        statistics.sizes,
        statistics.demand,
    ):
        for streams in values:
            if len(streams) == 1 and streams <= known:
                continue
            unknown = sorted(streams - aliases)
            if unknown:
                raise OptionError(f"statistics name {unknown[0]}, {_not_in(query)}")
            if not any(streams <= set(block.aliases) for block in query.blocks):
                raise OptionError(
                    f"statistics have a number for {streams}, which are on two sides of EXCEPT"
                )


def _not_in(query: JoinGraph) -> str:
    aliases = [stream.alias for block in query.blocks for stream in block.streams]
    return f"which the query does not have; its streams are {', '.join(aliases)}"

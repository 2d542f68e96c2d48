"""The model behind every rendering of a plan: operators with their costs, and why this plan.

What an operator costs adds up to what the plan costs: a window has its insertions, deletions, room
and the arrival of its tuples; a join has its probes and, below the root, the room and upkeep of its
state; the output has the rest (results, held results, what EXCEPT stores).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.explain.observation import Observation, Observations
from penstock.plan.plan import Plan, write
from penstock.plan.stream_set import StreamSet
from penstock.planning.bits import bits_of
from penstock.planning.block import Block, Cost
from penstock.planning.cost_model import probing
from penstock.planning.equal_columns import equal_columns
from penstock.planning.jtree_finder import jtree_finder, not_dominated
from penstock.planning.limits import Limits
from penstock.planning.planner import PLANNERS, decide
from penstock.planning.probe_orders import probe_orders
from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import Shape
from penstock.planning.two_layer import STREAMS_PROVEN
from penstock.planning.verdict import Choice, is_qualified
from penstock.query.expression import streams_of
from penstock.query.join_graph import EquiPredicate, JoinGraph


@dataclass(frozen=True, slots=True)
class Operator:
    """One window or join of a plan."""

    kind: str
    """``window``, ``join``, ``mjoin`` or ``output``."""
    streams: StreamSet
    details: str
    """The window's kind, or the predicates that are decided here."""
    rate: float
    """Tuples that it takes in (a window) or makes (a join) per second."""
    rows: float | None
    """Rows that it stores; None if it stores nothing."""
    cpu: float
    memory: float
    orders: tuple[str, ...] = ()
    inputs: tuple[Operator, ...] = ()
    observed: Observation | None = None

    @property
    def name(self) -> str:
        return " ".join(sorted(self.streams))

    def walk(self) -> Iterator[Operator]:
        """This operator and everything below it, parents first."""
        yield self
        for each in self.inputs:
            yield from each.walk()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another plan and what it would cost."""

    name: str
    plan: str
    """Without probe orders: the best ones are meant."""
    cost: Cost
    qualified: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan, explained."""

    plan: str
    """In the notation, with probe orders if it has them."""
    outline: str
    """The same without probe orders: what alternatives are compared with."""
    roots: tuple[Operator, ...]
    """The tree of each block; those after the first are subtracted."""
    output: Operator
    cost: Cost
    limits: Limits
    qualified: bool
    why: str
    alternatives: tuple[Alternative, ...]
    front: tuple[Alternative, ...]
    """Plans of which none needs less CPU without more memory, by CPU."""
    assumptions: tuple[str, ...]
    observed: Observation | None = None

    def operators(self) -> Iterator[Operator]:
        for root in self.roots:
            yield from root.walk()
        yield self.output

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from penstock.explain.html import explanation_html

        return explanation_html(self)


def explain(
    problem: Problem,
    plan: Plan,
    limits: Limits | None = None,
    why: str = "given by hand",
    observations: Observations | None = None,
) -> Explanation:
    """Explain ``plan``; ``why`` is what the planner said when it chose it."""
    limits = limits or Limits()
    problem = problem.crossing if problem.crosses(plan) else problem
    chosen = problem.evaluate(problem.shapes_of(plan))
    seen = observations or Observations()
    roots = tuple(
        _operator(block, graph, shape, None, seen)
        for block, graph, shape in zip(
            problem.blocks, problem.query.blocks, chosen.shapes, strict=True
        )
    )
    others = _alternatives(problem, limits)
    return Explanation(
        plan=write(plan),
        outline=problem.outline(chosen),
        roots=roots,
        output=_output(problem, chosen, roots, seen),
        cost=chosen.cost,
        limits=limits,
        qualified=is_qualified(chosen.cost, limits),
        why=why,
        alternatives=tuple(
            _alternative(problem, limits, name, each) for name, each in others.items()
        ),
        front=tuple(
            _alternative(problem, limits, "", each)
            for each in _front(problem, [chosen, *others.values()])
        ),
        assumptions=problem.assumptions,
        observed=observations.total if observations is not None else None,
    )


def _operator(
    block: Block, graph: JoinGraph, shape: Shape, indexes: int | None, seen: Observations
) -> Operator:
    """The operator of ``shape``; ``indexes`` of its state, None for a root that stores nothing."""
    names = StreamSet(block.names[i] for i in bits_of(shape.mask))
    if not shape.inputs:
        window = block.windows[shape.mask.bit_length() - 1]
        stored = block.storing(shape.mask, indexes or 0)
        return Operator(
            "window",
            names,
            str(graph.stream(window.name).window),
            window.arrivals,
            window.rows,
            stored.cpu + window.arrivals * block.costs.arrival,
            stored.memory,
            observed=seen.of(names),
        )
    parts = shape.parts
    found = probe_orders(block, parts)
    inputs = tuple(
        _operator(block, graph, each, count, seen)
        for each, count in zip(shape.inputs, block.indexes(parts), strict=True)
    )
    made = block.share_made(shape.mask) if indexes is not None else 1.0
    cpu, memory, rows = probing(block, parts), 0.0, None
    if indexes is not None:
        stored = block.storing(shape.mask, indexes)
        cpu, memory = cpu + stored.cpu, stored.memory
        rows = made * block.cardinality.size(shape.mask)
    orders: tuple[str, ...] = ()
    if len(inputs) > 2:
        orders = tuple(
            f"{inputs[i].name} → {' → '.join(inputs[j].name for j in order)}"
            for i, order in enumerate(found.orders)
        )
    return Operator(
        "mjoin" if len(inputs) > 2 else "join",
        names,
        _decided(graph, [each.streams for each in inputs]),
        made * block.cardinality.rate(shape.mask),
        rows,
        cpu,
        memory,
        orders,
        inputs,
        seen.of(names),
    )


def _decided(graph: JoinGraph, inputs: list[StreamSet]) -> str:
    """The comparisons that are made when ``inputs`` come together."""
    found = []
    for members in equal_columns(graph):
        sides = []
        for each in inputs:
            inside = [e for e in members if streams_of(e) <= each]
            if inside:
                sides.append(str(inside[0]))
        if len(sides) > 1:
            found.append(" = ".join(sides))
    both = StreamSet.union_of(inputs)
    for predicate in graph.predicates:
        streams = predicate.streams
        if isinstance(predicate, EquiPredicate) or len(streams) < 2:
            continue
        if streams <= both and not any(streams <= each for each in inputs):
            found.append(str(predicate))
    return " AND ".join(found) or "cross product"


def _output(
    problem: Problem, chosen: Candidate, roots: tuple[Operator, ...], seen: Observations
) -> Operator:
    inside = [each for root in roots for each in root.walk()]
    main = problem.blocks[0]
    query = problem.query
    details = query.emission + (" of groups" if query.is_grouped else "")
    if query.minus:
        details += f" without {len(query.minus)} other answers"
    total = seen.total
    return Operator(
        "output",
        StreamSet(main.names),
        details,
        main.cardinality.rate(main.everything),
        None,
        max(0.0, chosen.cost.cpu - sum(each.cpu for each in inside)),
        max(0.0, chosen.cost.memory - sum(each.memory for each in inside)),
        observed=Observation(rate=total.rate) if total.rate is not None else None,
    )


def _alternatives(problem: Problem, limits: Limits) -> dict[str, Candidate]:
    """What each polynomial planner makes of it; a refusal's nearest plan."""
    found: dict[str, Candidate] = {}
    for name in PLANNERS:
        if name in ("jtree-finder", "two-layer-paper"):
            continue
        verdict = decide(problem, limits, name)
        found[name] = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
    return found


def _front(problem: Problem, seen: list[Candidate]) -> list[Candidate]:
    """The front of CPU against memory: exact for few streams, else of the plans that were seen."""
    if all(len(block.windows) <= STREAMS_PROVEN for block in problem.blocks):
        return jtree_finder(problem, Limits())
    return not_dominated(seen)


def _alternative(problem: Problem, limits: Limits, name: str, candidate: Candidate) -> Alternative:
    cost = candidate.cost
    return Alternative(name, problem.outline(candidate), cost, is_qualified(cost, limits))

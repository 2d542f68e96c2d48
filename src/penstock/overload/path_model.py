"""The path productivity model of a plan under a workload.

The half-way joins of the plan with their productivities, in an order in which producers come before
consumers, and the input path of each stream: JAQPOT sections 3 and 4.1, the path productivity table
(figure 8), saturation resources and saturation throughput.

Any plan shape will do. A join of k inputs gives k directions (:mod:`.direction`); those of a
binary join have one half-way join each, those of an mjoin k-1. What a join below the root makes is
stored, and these states are the staleness susceptible ones: k-2 of them in a binary tree of k
streams (Lemma 2), none in an mjoin, in between for a jtree.

There are two ways to the productivities: from a :class:`~penstock.overload.workload.Workload` by
the cost model (:func:`path_model`), or as matches per probe that were observed or are simply given
(:func:`observed_model`). The paper's examples are of the second kind, since there the two half-way
joins of one join have different selectivities.

Only the block before EXCEPT is modelled. Probes of a block that is subtracted must never be
skipped, since a result missing there is a result too many in the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from penstock.errors import OptionError, PlanError
from penstock.overload.direction import Direction
from penstock.overload.half_way_join import HalfWayJoin
from penstock.overload.input_path import InputPath
from penstock.overload.workload import Workload, check_number
from penstock.plan.plan import Join, Leaf, Node, Plan, walk
from penstock.plan.stream_set import StreamSet

Orders = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class PathModel:
    """``directions`` come bottom-up; ``sizes`` has every window and every stored join.

    ``windows`` are the seconds that a tuple of each stream stays in its window.
    """

    plan: Plan
    rates: Mapping[str, float]
    windows: Mapping[str, float]
    directions: tuple[Direction, ...]
    sizes: Mapping[StreamSet, float]
    paths: tuple[InputPath, ...] = field(init=False)

    def __post_init__(self) -> None:
        above = {direction.origin: direction for direction in self.directions}

        def climb(streams: StreamSet) -> Iterator[Direction]:
            while streams in above:
                yield above[streams]
                streams = above[streams].result

        paths = tuple(
            InputPath(node.stream, self.rates[node.stream], tuple(climb(node.streams)))
            for node in walk(self.plan.root)
            if isinstance(node, Leaf)
        )
        object.__setattr__(self, "paths", paths)

    @property
    def susceptible(self) -> tuple[StreamSet, ...]:
        """The stored joins below the root, bottom-up: the states that can become stale."""
        return tuple(d.origin for d in self.directions if len(d.origin) > 1)

    @property
    def half_way_joins(self) -> tuple[HalfWayJoin, ...]:
        return tuple(step for direction in self.directions for step in direction.steps)

    @property
    def joins(self) -> dict[StreamSet, tuple[Direction, ...]]:
        """The directions of each join, by the streams of its result, bottom-up."""
        found: dict[StreamSet, tuple[Direction, ...]] = {}
        for direction in self.directions:
            found[direction.result] = (*found.get(direction.result, ()), direction)
        return found

    @property
    def saturation_resources(self) -> float:
        """Probes per second that process everything."""
        return sum(path.resources for path in self.paths)

    @property
    def saturation_throughput(self) -> float:
        """Results per second when everything is processed."""
        return sum(path.throughput for path in self.paths)


def path_model(plan: Plan, workload: Workload) -> PathModel:
    """The model of ``plan`` where productivities follow from rates, windows and selectivities.

    Where the plan leaves a probe order open, an input visits first what it is linked to by a
    selectivity, then in the order of the plan, as the engine does.
    """
    root = _root(plan)
    windows = {}
    for stream in sorted(root.streams):
        size = workload.size(StreamSet.of(stream))
        rate = workload.rates.get(stream, 0.0)
        window = workload.windows.get(stream)
        windows[stream] = window if window is not None else size / rate if rate else float("inf")
    sizes: dict[StreamSet, float] = {}
    for node in walk(root):
        size = 1.0
        if isinstance(node, Leaf):
            size = workload.size(node.streams)
        elif node is not root:
            together = StreamSet()
            for each in node.inputs:
                size *= sizes[each.streams] * workload.selectivity(together, each.streams)
                together = together | each.streams
        sizes[node.streams] = workload.sizes.get(node.streams, size)
    del sizes[root.streams]

    def productivity(step: HalfWayJoin) -> float:
        return workload.selectivity(step.probing, step.target) * sizes[step.target]

    rates = {stream: workload.rates.get(stream, 0.0) for stream in sorted(root.streams)}
    directions = _directions(root, productivity, workload.linked)
    return PathModel(plan, rates, windows, directions, sizes)


def observed_model(
    plan: Plan,
    rates: Mapping[str, float],
    productivities: Mapping[tuple[StreamSet, StreamSet], float],
    sizes: Mapping[StreamSet, float] | None = None,
) -> PathModel:
    """The model of ``plan`` with given matches per probe, keyed by origin and target.

    ``sizes`` are needed for staleness only; a state that is not named counts as empty.
    """
    root = _root(plan)
    known = dict(sizes or {})

    def productivity(step: HalfWayJoin) -> float:
        key = step.origin, step.target
        if key not in productivities:
            raise OptionError(f"no productivity for the half-way join {step}")
        check_number(f"the productivity of {step}", productivities[key])
        return productivities[key]

    for stream in root.streams:
        if stream not in rates:
            raise OptionError(f"no rate for stream {stream}")
        check_number(f"the rate of {stream}", rates[stream])
    windows = {}
    for stream in sorted(root.streams):
        size = known.setdefault(StreamSet.of(stream), 0.0)
        windows[stream] = size / rates[stream] if rates[stream] else float("inf")
    for node in walk(root):
        if isinstance(node, Join) and node is not root:
            known.setdefault(node.streams, 0.0)
    directions = _directions(root, productivity, lambda left, right: True)
    return PathModel(plan, {s: rates[s] for s in sorted(root.streams)}, windows, directions, known)


def thinned(model: PathModel, admitted: Mapping[str, float]) -> PathModel:
    """The ``model`` when only these shares of the rows of streams are taken in."""
    if all(share >= 1 for share in admitted.values()):
        return model

    def share(streams: StreamSet) -> float:
        return prod(admitted.get(stream, 1.0) for stream in streams)

    directions = tuple(
        replace(
            each,
            productivities=tuple(
                found * share(step.target)
                for found, step in zip(each.productivities, each.steps, strict=True)
            ),
        )
        for each in model.directions
    )
    rates = {stream: rate * admitted.get(stream, 1.0) for stream, rate in model.rates.items()}
    sizes = {streams: size * share(streams) for streams, size in model.sizes.items()}
    return PathModel(model.plan, rates, model.windows, directions, sizes)


def _root(plan: Plan) -> Join:
    if isinstance(plan.root, Leaf):
        raise PlanError(f"the plan {plan} joins nothing, so there are no probes to allocate")
    return plan.root


def _directions(
    root: Join,
    productivity: Callable[[HalfWayJoin], float],
    linked: Callable[[StreamSet, StreamSet], bool],
) -> tuple[Direction, ...]:
    found = []
    for node in walk(root):
        if isinstance(node, Leaf):
            continue
        for position, order in enumerate(node.orders or _orders(node.inputs, linked)):
            origin = together = node.inputs[position].streams
            steps = []
            for other in order:
                target = node.inputs[other].streams
                steps.append(HalfWayJoin(origin, target, together))
                together = together | target
            found.append(
                Direction(origin, node.streams, tuple(steps), tuple(map(productivity, steps)))
            )
    return tuple(found)


def _orders(inputs: tuple[Node, ...], linked: Callable[[StreamSet, StreamSet], bool]) -> Orders:
    """For each input the others: those linked to what has come together first, by position."""
    count = len(inputs)
    links = [
        {j for j in range(count) if j != i and linked(inputs[i].streams, inputs[j].streams)}
        for i in range(count)
    ]
    orders = []
    for position in range(count):
        left = set(range(count)) - {position}
        near = links[position] & left
        order = []
        while left:
            chosen = min(near or left)
            order.append(chosen)
            left.remove(chosen)
            near = (near | links[chosen]) & left
        orders.append(tuple(order))
    return tuple(orders)

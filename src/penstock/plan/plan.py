"""The immutable plan tree.

A plan says in which order streams are joined and what is stored on the way. A :class:`Leaf` is the
window of one stream. A :class:`Join` of two inputs is a binary join; of more, an mjoin (JTree
section 2): every input has a probe order, the order in which its new tuples visit the other
inputs. The result of each join below the root is stored; inside an mjoin nothing is. Binary trees,
mjoins and all mixtures of the two (jtrees) are thus one type.

``Plan.minus`` holds a tree for each block after EXCEPT, in the order in which they are subtracted.
``Plan.eddy`` names the eddy (JISC sections 3.1, 3.2 and 4.6) that chose the trees and may change
them while the query runs; a plan without one is changed by a controller or a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from penstock.errors import PlanError
from penstock.plan.picture import Box, tree_svg
from penstock.plan.stream_set import StreamSet
from penstock.query.join_graph import JoinGraph


@dataclass(frozen=True, slots=True)
class Leaf:
    """The window of one stream."""

    stream: str

    @property
    def streams(self) -> StreamSet:
        return StreamSet.of(self.stream)


@dataclass(frozen=True, slots=True)
class Join:
    """A join of two or more inputs.

    ``orders`` is empty (the engine chooses) or has, for each input, the positions of all the other
    inputs in the order in which they are probed.
    """

    inputs: tuple[Node, ...]
    orders: tuple[tuple[int, ...], ...] = ()
    streams: StreamSet = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise PlanError("a join needs at least two inputs")
        seen: set[str] = set()
        for each in self.inputs:
            twice = seen & each.streams
            if twice:
                raise PlanError(f"stream {min(twice)} occurs twice in the plan")
            seen |= each.streams
        if self.orders:
            everyone = set(range(len(self.inputs)))
            if len(self.orders) != len(self.inputs):
                raise PlanError("an mjoin with probe orders needs one for every input")
            for position, order in enumerate(self.orders):
                if sorted(order) != sorted(everyone - {position}):
                    raise PlanError(
                        f"the probe order of input {self.inputs[position].streams} "
                        "must name every other input once"
                    )
        object.__setattr__(self, "streams", StreamSet(seen))


Node = Leaf | Join

EDDIES = ("cacq", "stairs", "stairs-lazy")
"""Eddies by name: see :mod:`penstock.engine.control.eddy`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A tree over the streams of the query, and one for each block after EXCEPT."""

    root: Node
    minus: tuple[Node, ...] = ()
    eddy: str = ""
    """The eddy that may change the trees; empty if none does."""

    def __post_init__(self) -> None:
        if self.eddy and self.eddy not in EDDIES:
            raise PlanError(f"no eddy is called {self.eddy!r}; they are: {', '.join(EDDIES)}")
        if self.eddy == "cacq" and any(stores_results(root) for root in self.roots):
            raise PlanError(
                "cacq stores nothing but windows: its plan is one join of all streams, such as "
                "cacq (A B C)"
            )

    @property
    def streams(self) -> StreamSet:
        return self.root.streams

    @property
    def roots(self) -> tuple[Node, ...]:
        """The trees of all blocks."""
        return (self.root, *self.minus)

    def in_blocks(self, graph: JoinGraph) -> tuple[Node, ...]:
        """The trees of the blocks of ``graph``, in the order of the query."""
        places = self.places_in(graph)
        return (self.root, *(self.minus[places.index(n)] for n in range(len(places))))

    def places_in(self, graph: JoinGraph) -> tuple[int, ...]:
        """Which of the blocks of ``graph`` after EXCEPT are subtracted, one after the other."""
        blocks = [block.aliases for block in graph.minus]
        return tuple(blocks.index(block_of(node, graph).aliases) for node in self.minus)

    def subtracting_in(self, places: Sequence[int]) -> Plan:
        """The plan, which has its blocks in the order of the query, with another order."""
        return replace(self, minus=tuple(self.minus[place] for place in places))

    def __str__(self) -> str:
        return write(self)

    def svg(self) -> str:
        """The plan as a picture; blocks after EXCEPT stand below."""
        return tree_svg([_box(node) for node in (self.root, *self.minus)], f"plan {self}")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.svg()

    def check(self, graph: JoinGraph) -> None:
        """Raise :class:`PlanError` unless every stream of ``graph`` occurs exactly once."""
        _check_block(self.root, graph)
        if not self.minus:
            return
        if len(self.minus) != len(graph.minus):
            raise PlanError(
                f"the plan subtracts {len(self.minus)} blocks, the query has {len(graph.minus)} "
                "after EXCEPT"
            )
        seen: set[tuple[str, ...]] = set()
        for node in self.minus:
            block = block_of(node, graph)
            _check_block(node, block)
            if block.aliases in seen:
                raise PlanError(f"the plan subtracts {node.streams} twice")
            seen.add(block.aliases)


def write(plan: Plan | Node) -> str:
    """``plan`` in the notation; ``read(write(plan)) == plan``."""
    if isinstance(plan, Plan):
        trees = " - ".join(write(node) for node in (plan.root, *plan.minus))
        return f"{plan.eddy} {trees}" if plan.eddy else trees
    if isinstance(plan, Leaf):
        return _name(plan.stream)
    inside = " ".join(write(each) for each in plan.inputs)
    if plan.orders:
        labels = [label(each) for each in plan.inputs]
        orders = (
            f"{labels[i]}:{','.join(labels[j] for j in order)}"
            for i, order in enumerate(plan.orders)
        )
        inside += " | " + " ".join(orders)
    return f"({inside})"


_is_plain = re.compile(r"\w+").fullmatch


def _name(stream: str) -> str:
    return stream if _is_plain(stream) else '"' + stream.replace('"', '""') + '"'


def _leaves(node: Node) -> list[str]:
    if isinstance(node, Leaf):
        return [node.stream]
    return [stream for each in node.inputs for stream in _leaves(each)]


def label(node: Node) -> str:
    """The name of ``node`` among the inputs of a probe order: its streams."""
    names = [_name(stream) for stream in _leaves(node)]
    return names[0] if isinstance(node, Leaf) else f"({' '.join(names)})"


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it, children first."""
    if isinstance(node, Join):
        for each in node.inputs:
            yield from walk(each)
    yield node


def stores_results(root: Node) -> bool:
    """Whether the tree stores anything but windows."""
    return isinstance(root, Join) and any(isinstance(each, Join) for each in root.inputs)


def first_routes(eddy: str, query: JoinGraph) -> Plan:
    """The plan of ``eddy`` before anything is known of the streams: in the order of the query."""
    first, *others = (_first_route(eddy, block.aliases) for block in query.blocks)
    return Plan(first, tuple(others), eddy)


def _first_route(eddy: str, aliases: Sequence[str]) -> Node:
    leaves = [Leaf(alias) for alias in aliases]
    if len(leaves) > 2 and eddy == "cacq":
        return Join(tuple(leaves))
    tree: Node = leaves[0]
    for leaf in leaves[1:]:
        tree = Join((tree, leaf))
    return tree


def block_of(node: Node, graph: JoinGraph) -> JoinGraph:
    """The block of ``graph`` after EXCEPT whose streams ``node`` covers."""
    for block in graph.minus:
        if node.streams & frozenset(block.aliases):
            return block
    known = ", ".join(alias for block in graph.minus for alias in block.aliases) or "none"
    raise PlanError(f"no block after EXCEPT has the streams {node.streams}; they are: {known}")


def _check_block(node: Node, graph: JoinGraph) -> None:
    wanted = frozenset(graph.aliases)
    unknown = node.streams - wanted
    if unknown:
        raise PlanError(
            f"the plan names {_names(unknown)}, which the query does not have; "
            f"its streams are {', '.join(graph.aliases)}"
        )
    missing = wanted - node.streams
    if missing:
        raise PlanError(
            f"the plan leaves out {_names(missing)}; every stream must occur once: "
            f"{', '.join(graph.aliases)}"
        )


def _names(streams: frozenset[str]) -> str:
    return ", ".join(sorted(streams))


def _box(node: Node) -> Box:
    if isinstance(node, Leaf):
        return Box(node.stream)
    inputs = tuple(_box(each) for each in node.inputs)
    return Box("mjoin" if len(inputs) > 2 else "join", (), inputs)

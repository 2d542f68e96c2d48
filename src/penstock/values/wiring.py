"""Which columns are compared with which, and when.

Equality is transitive, so the columns that WHERE equates fall into *classes*: A.x = B.x and
B.x = C.x make one class of three. A result needs all members of a class to be equal, and that is
all that the equi-predicates say. Hence, when composites over S meet rows over T, one equality per
class that has members on both sides is enough: members inside S are equal already, by induction,
and likewise inside T. This also links A with C in the example, so a plan ((A C) B) is no cross
product. Two members in one stream become a condition at its leaf.

Comparisons ``<, <=, >, >=, <>`` of one ordered expression over each of two streams become compiled
:class:`Condition` values on encoded columns. What is left (OR, LIKE, arithmetic over several
streams, …) is a residual, evaluated on columns as soon as its streams are together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.errors import InvariantBroken
from penstock.kernels import probe
from penstock.query.equality_classes import equality_classes
from penstock.query.expression import Comparison, Expression, streams_of
from penstock.query.join_graph import EquiPredicate, JoinGraph, Predicate
from penstock.values.key_types import key_type_of

OPERATORS = {
    "=": probe.EQUAL,
    "<>": probe.NOT_EQUAL,
    "<": probe.LESS,
    "<=": probe.LESS_EQUAL,
    ">": probe.GREATER,
    ">=": probe.GREATER_EQUAL,
}
MIRRORED = {
    probe.EQUAL: probe.EQUAL,
    probe.NOT_EQUAL: probe.NOT_EQUAL,
    probe.LESS: probe.GREATER,
    probe.LESS_EQUAL: probe.GREATER_EQUAL,
    probe.GREATER: probe.LESS,
    probe.GREATER_EQUAL: probe.LESS_EQUAL,
}


class KeyColumn(NamedTuple):
    """Encoded column number ``position`` of the leaf of ``stream``.

    A tuple, since indexes are looked up by it, and the hash of a dataclass is Python.
    """

    stream: str
    position: int


@dataclass(frozen=True, slots=True)
class Condition:
    """``left operator right`` on encoded columns of two streams."""

    operator: int
    left: KeyColumn
    right: KeyColumn

    def seen_from(self, streams: frozenset[str]) -> Condition:
        """The same condition with its left side in ``streams``."""
        if self.left.stream in streams:
            return self
        return Condition(MIRRORED[self.operator], self.right, self.left)


@dataclass(frozen=True, slots=True)
class Linking:
    """All that must hold when two sets of streams come together, and did not have to before."""

    keys: tuple[tuple[KeyColumn, KeyColumn], ...]
    conditions: tuple[Condition, ...]
    residuals: tuple[Predicate, ...]


@dataclass(slots=True, eq=False)
class Wiring:
    """The comparisons of one block of a query.

    ``keys[stream]`` lists the expressions that the leaf encodes; ``interners`` numbers, for the
    same positions, the class whose interner encodes them (None where encoding needs none).
    """

    keys: dict[str, list[Expression]]
    interners: dict[str, list[int | None]]
    classes: tuple[tuple[KeyColumn, ...], ...]
    conditions: tuple[Condition, ...]
    filters: dict[str, tuple[Predicate, ...]]
    residuals: tuple[Predicate, ...]
    same: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Pairs of encoded columns of one leaf that must be equal."""
    _known: dict[tuple[frozenset[str], frozenset[str]], Linking] = field(default_factory=dict)
    """Answers of :meth:`between`: a change of plan asks again and again."""
    _places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The numbers of the classes that each stream has members in, and where in them."""
    _members: dict[frozenset[str], dict[int, KeyColumn]] = field(default_factory=dict)
    """Answers of :meth:`_members_in`."""

    def between(self, left: frozenset[str], right: frozenset[str]) -> Linking:
        """What links ``left`` and ``right``."""
        linking = self._known.get((left, right))
        if linking is None:
            linking = self._known[left, right] = self._between(left, right)
        return linking

    def _between(self, left: frozenset[str], right: frozenset[str]) -> Linking:
        mine, theirs = self._members_in(left), self._members_in(right)
        keys = [(mine[number], theirs[number]) for number in sorted(mine.keys() & theirs.keys())]
        conditions = [
            c.seen_from(left)
            for c in self.conditions
            if (c.left.stream in left and c.right.stream in right)
            or (c.left.stream in right and c.right.stream in left)
        ]
        both = left | right
        residuals = [
            p
            for p in self.residuals
            if p.streams <= both and not p.streams <= left and not p.streams <= right
        ]
        return Linking(tuple(keys), tuple(conditions), tuple(residuals))

    def _members_in(self, streams: frozenset[str]) -> dict[int, KeyColumn]:
        """The first member in ``streams`` of each class, by the number of the class."""
        known = self._members.get(streams)
        if known is not None:
            return known
        if not self._places:
            for number, members in enumerate(self.classes):
                for place, member in enumerate(members):
                    self._places.setdefault(member.stream, []).append((number, place))
        first: dict[int, int] = {}
        for stream in streams:
            for number, place in self._places.get(stream, ()):
                first[number] = min(place, first.get(number, place))
        found = {number: self.classes[number][place] for number, place in first.items()}
        self._members[streams] = found
        return found


def wire(graph: JoinGraph) -> Wiring:
    """The wiring of one block."""
    keys: dict[str, list[Expression]] = {s.alias: [] for s in graph.streams}

    def column(expression: Expression) -> KeyColumn:
        (stream,) = streams_of(expression)
        if expression not in keys[stream]:
            keys[stream].append(expression)
        return KeyColumn(stream, keys[stream].index(expression))

    pairs: list[tuple[KeyColumn, KeyColumn]] = []
    conditions: list[Condition] = []
    filters: dict[str, list[Predicate]] = {s.alias: [] for s in graph.streams}
    residuals: list[Predicate] = []
    for predicate in graph.predicates:
        if isinstance(predicate, EquiPredicate):
            pairs.append((column(predicate.left), column(predicate.right)))
        elif len(predicate.streams) == 0:
            raise InvariantBroken(f"the parser left a constant condition: {predicate}")
        elif len(predicate.streams) == 1:
            (stream,) = predicate.streams
            filters[stream].append(predicate)
        elif _is_condition(predicate.expression):
            assert isinstance(predicate.expression, Comparison)
            operator = OPERATORS[predicate.expression.operator]
            left, right = column(predicate.expression.left), column(predicate.expression.right)
            conditions.append(Condition(operator, left, right))
        else:
            residuals.append(predicate)

    classes = tuple(tuple(members) for members in equality_classes(pairs))
    same: dict[str, list[tuple[int, int]]] = {}
    interners: dict[str, list[int | None]] = {s: [None] * len(e) for s, e in keys.items()}
    for number, members in enumerate(classes):
        first: dict[str, int] = {}
        for member in members:
            if member.stream in first:
                same.setdefault(member.stream, []).append((first[member.stream], member.position))
            else:
                first[member.stream] = member.position
            if key_type_of(keys[member.stream][member.position].type).needs_interner:
                interners[member.stream][member.position] = number
    return Wiring(
        keys,
        interners,
        classes,
        tuple(conditions),
        {stream: tuple(each) for stream, each in filters.items()},
        tuple(residuals),
        {stream: tuple(each) for stream, each in same.items()},
    )


def _is_condition(expression: Expression) -> bool:
    if not isinstance(expression, Comparison):
        return False
    left, right = streams_of(expression.left), streams_of(expression.right)
    return (
        len(left) == 1
        and len(right) == 1
        and left != right
        and key_type_of(expression.left.type).ordered
    )

"""Which columns are compared where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeVar

from penstock.errors import OptionError
from penstock.plan.stream_set import StreamSet
from penstock.query.expression import Column
from penstock.query.join_graph import EquiPredicate, JoinGraph
from penstock.query.window import Range

T = TypeVar("T")
Values = tuple[int, ...]
Pick = Callable[[Values], Values]
Name = tuple[str, str]
"""A stream and its column."""


@dataclass(frozen=True, slots=True)
class Equality:
    """``left = right``."""

    left: Name
    right: Name

    def side(self, streams: StreamSet) -> Name | None:
        """The column that belongs to one of ``streams``."""
        mine = [name for name in (self.left, self.right) if name[0] in streams]
        return mine[0] if mine else None


def equalities_of(query: JoinGraph) -> list[Equality]:
    """The predicates of ``query``, which must all equate two columns."""
    found = []
    for predicate in query.predicates:
        if not isinstance(predicate, EquiPredicate) or not (
            isinstance(predicate.left, Column) and isinstance(predicate.right, Column)
        ):
            raise OptionError(f"only columns that are equal can be compared here, not {predicate}")
        left, right = predicate.left, predicate.right
        found.append(Equality((left.stream, left.name), (right.stream, right.name)))
    return found


def window_of(query: JoinGraph) -> int:
    """The window of all streams of ``query``, in milliseconds; it must be one."""
    windows = {s.window.milliseconds for s in query.streams if isinstance(s.window, Range)}
    if len(windows) != 1 or not all(isinstance(s.window, Range) for s in query.streams):
        raise OptionError("all streams must have one RANGE window")
    return windows.pop()


def needed_above(names: Iterable[Name], streams: StreamSet, all_: Sequence[Equality]) -> list[Name]:
    """Those of ``names`` that are compared with a stream outside of ``streams``."""
    outside = {
        name
        for each in all_
        for name, other in ((each.left, each.right), (each.right, each.left))
        if name[0] in streams and other[0] not in streams
    }
    return [name for name in names if name in outside]


def picker(layout: Sequence[T], names: Sequence[T]) -> Pick:
    """A function that takes the values of ``names`` out of a row of ``layout``."""
    places = [layout.index(name) for name in names]
    if not places:
        return lambda row: ()
    if len(places) == 1:
        place = places[0]
        return lambda row: (row[place],)
    return itemgetter(*places)

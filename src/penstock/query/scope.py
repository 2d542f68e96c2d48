"""Names: which stream, and which column of it, a text means.

A name means the one that is spelled exactly like it; if there is none, the one that differs only in
upper and lower case, provided there is just one. Whoever finds nothing is told what exists.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import QueryError
from penstock.query.expression import Column, Expression, Field
from penstock.query.join_graph import Stream
from penstock.query.left_out import left_out
from penstock.query.syntax import Name, Span

_MOST_LISTED = 20


def matching(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that ``name`` means, or None if there is none, or more than one."""
    found = []
    for candidate in candidates:
        if candidate == name:
            return candidate
        if candidate.lower() == name.lower():
            found.append(candidate)
    return found[0] if len(found) == 1 else None


def listed(names: Iterable[str]) -> str:
    """``names`` for an error message, not too many of them."""
    names = list(names)
    shown = ", ".join(names[:_MOST_LISTED]) or "none"
    return shown + (f", … ({len(names)} in all)" if len(names) > _MOST_LISTED else "")


def resembling(name: str, candidates: Iterable[str], least: float = 0.6) -> str | None:
    """The candidate that ``name`` is most likely a misspelling of.

    ``least`` is how like it has to be, from 0 to 1.
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=least)
    return by_lower[close[0]] if close else None


def suggestion(name: str, candidates: Iterable[str], least: float = 0.6) -> str | None:
    """A hint that names the candidate nearest to ``name``, if one is near."""
    near = resembling(name, candidates, least)
    return f"did you mean {near}?" if near else None


@dataclass(frozen=True, slots=True)
class Scope:
    """The streams of one block, and the text that errors point into."""

    text: str
    streams: tuple[Stream, ...]

    def column(self, qualifier: Name | None, name: Name) -> Column:
        """The column written as ``qualifier.name``, or as ``name`` alone."""
        if qualifier:
            return self._column_of(self.stream(qualifier), name)
        found = [(s, c) for s in self.streams if (c := matching(name.text, s.schema.names))]
        exact = [(s, c) for s, c in found if c == name.text]
        found = exact or found
        if len(found) == 1:
            return self._made(*found[0])
        if found:
            owners = [s.alias for s, _ in found]
            raise self.error(
                f"column {name.text} is ambiguous: {_enumerated(owners)} have it",
                name.span,
                f"write {' or '.join(f'{owner}.{name.text}' for owner in owners)}",
            )
        choices = [f"{s.alias}.{c}" for s in self.streams for c in s.schema.names]
        by_column = {c: f"{s.alias}.{c}" for s in self.streams for c in s.schema.names}
        near = resembling(name.text, by_column)
        for stream in self.streams:
            self._check_left_out(stream, name)
        raise self.error(
            f"unknown column {name.text}; columns are {listed(choices)}",
            name.span,
            f"did you mean {by_column[near]}?" if near else None,
        )

    def has_stream(self, name: str) -> bool:
        """Whether a stream of the block is called ``name``."""
        return matching(name, [s.alias for s in self.streams]) is not None

    def field(self, operand: Expression, name: Name) -> Field:
        """The field ``name`` of ``operand``, which must be a struct."""
        if not pa.types.is_struct(operand.type):
            raise self.error(
                f"{operand} is {operand.type}, which has no fields",
                name.span,
                "leave this part out",
            )
        names = [field.name for field in operand.type]
        found = matching(name.text, names)
        if found is None:
            raise self.error(
                f"{operand} has no field {name.text}; it has {listed(names)}",
                name.span,
                suggestion(name.text, names),
            )
        return Field(operand.type.field(found).type, operand, found)

    def columns_of(self, qualifier: Name, span: Span) -> Sequence[Column]:
        """All columns of one stream: ``qualifier.*`` at ``span``."""
        return self._whole([self.stream(qualifier)], span)

    def all_columns(self, span: Span) -> Sequence[Column]:
        """``*`` at ``span``."""
        return self._whole(self.streams, span)

    def stream(self, name: Name) -> Stream:
        """The stream with the alias ``name``."""
        aliases = [s.alias for s in self.streams]
        found = matching(name.text, aliases)
        if found is not None:
            return self.streams[aliases.index(found)]
        hint = suggestion(name.text, aliases)
        for stream in self.streams:
            if stream.source.lower() == name.text.lower():
                hint = f"{stream.source} is called {stream.alias} in this query"
        raise self.error(
            f"unknown stream {name.text}; streams in FROM are {listed(aliases)}", name.span, hint
        )

    def _column_of(self, stream: Stream, name: Name) -> Column:
        found = matching(name.text, stream.schema.names)
        if found is None:
            self._check_left_out(stream, name)
            raise self.error(
                f"{stream.alias} has no column {name.text}; it has {listed(stream.schema.names)}",
                name.span,
                suggestion(name.text, stream.schema.names),
            )
        return self._made(stream, found)

    def _whole(self, streams: Sequence[Stream], span: Span) -> Sequence[Column]:
        for stream in streams:
            for name, kind in left_out(stream.schema).items():
                raise self.error(
                    f"* includes {stream.alias}.{name} of type {kind}, which Arrow has not",
                    span,
                    "name the columns, or cast it in the source",
                )
        return [self._made(s, name) for s in streams for name in s.schema.names]

    def _check_left_out(self, stream: Stream, name: Name) -> None:
        lacking = left_out(stream.schema)
        found = matching(name.text, lacking)
        if found is not None:
            raise self.error(
                f"{stream.alias}.{found} is of type {lacking[found]}, which Arrow has not",
                name.span,
                "cast it in the source, for example to a string or a number",
            )

    @staticmethod
    def _made(stream: Stream, name: str) -> Column:
        return Column(stream.schema.field(name).type, stream.alias, name)

    def error(self, message: str, span: Span, hint: str | None = None) -> QueryError:
        """A :class:`QueryError` at ``span``."""
        return QueryError(message, self.text, span[0], span[1], hint)


def _enumerated(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

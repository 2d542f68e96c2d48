"""Two families of errors: the user's mistakes, and our broken invariants.

A :class:`PenstockError` is something that the caller can mend: it says what was found, what was
expected and, where there is one, a hint. An :class:`InvariantBroken` is a bug in Penstock.
"""

from __future__ import annotations


class PenstockError(Exception):
    """A mistake of the caller: bad query, plan, option or input."""


class PenstockWarning(UserWarning):
    """Something that works and is probably not what the caller wants, with the remedy."""


class QueryError(PenstockError):
    """A query text that cannot be accepted, with the place in the text.

    ``str(error)`` shows the message, the offending line and a caret below it, and the hint.
    """

    def __init__(
        self,
        message: str,
        text: str | None = None,
        start: int | None = None,
        end: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.message = message
        self.text = text
        self.start = start
        self.end = end
        self.hint = hint
        super().__init__(self._render())

    def _render(self) -> str:
        parts = [self.message]
        if self.text is not None and self.start is not None:
            parts.append(point_at(self.text, self.start, self.end))
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class PlanError(PenstockError):
    """A plan that does not fit its query, or text that is not a plan."""


class OptionError(PenstockError):
    """An option with a value that does not exist."""


class InputError(PenstockError):
    """A batch that cannot be pushed: unknown stream, missing column, another type."""


class TooManyResults(PenstockError):  # noqa: N818 - the name states what happened
    """A push would make more combinations than there is memory for, or more results than
    ``max_results``; it has changed nothing."""

    def __init__(self, message: str, made: int = 0) -> None:
        super().__init__(message)
        self.made = made
        """Combinations that were foreseen when it was refused; there may be more."""


class NotEnoughMemory(TooManyResults, MemoryError):  # noqa: N818 - the same
    """The system refused memory that a push asked for; the push has changed nothing."""


class CheckpointError(PenstockError):
    """A checkpoint that is damaged, or that belongs to another query."""


class NoQualifiedPlan(PenstockError):  # noqa: N818 - the name states what happened
    """No plan stays within the limits: which limit, by how much, and which plan came nearest."""

    def __init__(
        self,
        message: str,
        exceeded: tuple[str, ...] = (),
        nearest: object = None,
        cpu: float = 0.0,
        memory: float = 0.0,
        proven: bool = False,
    ) -> None:
        super().__init__(message)
        self.exceeded = exceeded
        """The limits that the nearest plan exceeds: some of ``cpu`` and ``memory``."""
        self.nearest = nearest
        """The plan that came nearest."""
        self.cpu = cpu
        """CPU that it needs, as a share of a core."""
        self.memory = memory
        """Bytes that it needs."""
        self.proven = proven
        """Whether no plan at all is within the limits, or none was found."""


class InvariantBroken(Exception):  # noqa: N818 - the name states what happened
    """A bug in Penstock: please report it with the query and the plan."""


_LONGEST_LINE = 200
"""Characters of a line that are shown around a mistake: a query that a program has written may be a
single line of a megabyte."""


def point_at(text: str, start: int, end: int | None = None) -> str:
    """The line of ``text`` that holds ``start``, with carets below ``start`` up to ``end``."""
    start = max(0, min(start, len(text)))
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = stop if stop >= 0 else len(text)
    before, behind = "", ""
    if start - begin > _LONGEST_LINE // 2:
        begin, before = start - _LONGEST_LINE // 2, "…"
    if stop - begin > _LONGEST_LINE:
        stop, behind = begin + _LONGEST_LINE, "…"
    line = text[begin:stop]
    last = min(end if end is not None else start + 1, begin + len(line))
    number = text.count("\n", 0, start) + 1
    prefix = f"line {number}: {before}"
    padding = "".join("\t" if c == "\t" else " " for c in line[: start - begin])
    return f"{prefix}{line}{behind}\n{' ' * len(prefix)}{padding}{'^' * max(1, last - start)}"

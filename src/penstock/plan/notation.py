"""Plans as text: what :func:`~penstock.plan.plan.write` writes is read here.

``((A B) C)`` is a tree of binary joins, ``(A B C)`` one mjoin, ``((A B) C D)`` a jtree. The probe
orders of a join may follow: ``(A B C | A:B,C B:A,C C:A,B)``. An input that is itself a join is
named there by its streams: ``((A B) C D | (A B):C,D C:(A B),D D:C,(A B))``. Blocks after EXCEPT
follow a minus: ``(A B) - C``. The name of an eddy may stand in front: ``stairs ((A B) C)`` begins
with this tree, and changes it. A name that is not made of letters, digits and underscores is
written in double quotes, with quotes inside doubled.
"""

from __future__ import annotations

import functools
import re

from penstock.errors import PlanError, point_at
from penstock.plan.plan import EDDIES, Join, Leaf, Node, Plan, label
from penstock.plan.stream_set import StreamSet

_TOKEN = re.compile(r'\s*(?:(?P<name>\w+)|"(?P<quoted>(?:[^"]|"")*)"|(?P<mark>[()|:,−-]))')

_EDDY = re.compile(rf"\s*({'|'.join(sorted(EDDIES, reverse=True))})(?:\s+(?=[\w\"])|\s*(?=\())")
"""An eddy in front of a tree. A stream may have its name: no other stream or bracket follows it."""


@functools.lru_cache(maxsize=64)
def read(text: str) -> Plan:
    """The plan written in ``text``; raises :class:`PlanError` with a caret where it cannot be."""
    try:
        return _Reader(text).plan()
    except RecursionError:
        raise PlanError("a plan with more brackets inside each other than it has streams") from None


class _Reader:
    """A recursive-descent reader over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        routed = _EDDY.match(text)
        self.eddy = "" if routed is None else routed.group(1)
        position = 0 if routed is None else routed.end()
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                at = position + len(text[position:]) - len(text[position:].lstrip())
                raise self.error(f"unexpected {text[at]!r} in a plan", at)
            kind = match.lastgroup or ""
            value = match.group(kind)
            if kind == "quoted":
                kind, value = "name", value.replace('""', '"')
            self.tokens.append((kind, value, match.start(match.lastgroup or 0)))
            position = match.end()
        self.next = 0

    def error(self, message: str, at: int | None = None) -> PlanError:
        if at is None:
            at = self.tokens[self.next][2] if self.next < len(self.tokens) else len(self.text)
        return PlanError(f"{message}\n{point_at(self.text, at)}\nhint: a plan looks like ((A B) C)")

    def peek(self, mark: str) -> bool:
        return self.next < len(self.tokens) and self.tokens[self.next][:2] == ("mark", mark)

    def take(self, mark: str) -> None:
        if not self.peek(mark):
            raise self.error(f"expected {mark!r}")
        self.next += 1

    def name(self) -> str:
        if self.next >= len(self.tokens) or self.tokens[self.next][0] != "name":
            raise self.error("expected the name of a stream")
        self.next += 1
        return self.tokens[self.next - 1][1]

    def plan(self) -> Plan:
        root = self.node()
        minus = []
        while self.peek("-") or self.peek("−"):
            self.next += 1
            minus.append(self.node())
        if self.next < len(self.tokens):
            raise self.error("unexpected text after the plan")
        try:
            return Plan(root, tuple(minus), self.eddy)
        except PlanError as problem:
            raise self.error(str(problem), 0) from None

    def node(self) -> Node:
        if not self.peek("("):
            return Leaf(self.name())
        opened = self.tokens[self.next][2]
        self.next += 1
        inputs = [self.node()]
        while not self.peek(")") and not self.peek("|"):
            if self.next >= len(self.tokens):
                raise self.error("this parenthesis is never closed", opened)
            inputs.append(self.node())
        orders = self.orders(inputs) if self.peek("|") else ()
        self.take(")")
        if len(inputs) == 1 and not orders:
            return inputs[0]
        try:
            return Join(tuple(inputs), orders)
        except PlanError as problem:
            raise self.error(str(problem), opened) from None

    def orders(self, inputs: list[Node]) -> tuple[tuple[int, ...], ...]:
        self.take("|")
        start = self.tokens[self.next - 1][2]
        found: dict[int, tuple[int, ...]] = {}
        while not self.peek(")"):
            at = self.tokens[self.next][2] if self.next < len(self.tokens) else len(self.text)
            probing = self.reference(inputs)
            self.take(":")
            order = [self.reference(inputs)]
            while self.peek(","):
                self.next += 1
                order.append(self.reference(inputs))
            if probing in found:
                raise self.error("a second probe order for one input", at)
            found[probing] = tuple(order)
        if len(found) != len(inputs):
            missing = next(label(n) for i, n in enumerate(inputs) if i not in found)
            raise self.error(f"no probe order for {missing}", start)
        return tuple(found[i] for i in range(len(inputs)))

    def reference(self, inputs: list[Node]) -> int:
        """The position of the input that is named next: a stream, or streams in parentheses."""
        at = self.tokens[self.next][2] if self.next < len(self.tokens) else len(self.text)
        if self.peek("("):
            self.next += 1
            names = [self.name()]
            while not self.peek(")"):
                names.append(self.name())
            self.take(")")
        else:
            names = [self.name()]
        for position, node in enumerate(inputs):
            if node.streams == StreamSet(names):
                return position
        known = ", ".join(label(node) for node in inputs)
        raise self.error(f"{' '.join(names)} is not an input of this join; they are: {known}", at)

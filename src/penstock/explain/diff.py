"""Two plans of one query side by side: which states stay, which come and go, what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.explain.explanation import Explanation, Operator
from penstock.explain.quantities import count_text, memory_text, share_text
from penstock.plan.stream_set import StreamSet
from penstock.planning.block import Cost
from penstock.planning.limits import three_digits


@dataclass(frozen=True, slots=True)
class Difference:
    """What changes from one plan to another."""

    before: Explanation
    after: Explanation
    kept: tuple[StreamSet, ...]
    """Stored joins of both: a migration carries them over."""
    dropped: tuple[StreamSet, ...]
    added: tuple[StreamSet, ...]
    """Stored joins that only the new plan has: a migration has to complete them."""

    @property
    def change(self) -> Cost:
        return Cost(
            self.after.cost.cpu - self.before.cost.cpu,
            self.after.cost.memory - self.before.cost.memory,
        )


def difference(before: Explanation, after: Explanation) -> Difference:
    """Compare two explanations of plans of one query."""
    old, new = _states(before), _states(after)
    return Difference(
        before,
        after,
        tuple(s for s in old if s in new),
        tuple(s for s in old if s not in new),
        tuple(s for s in new if s not in old),
    )


def difference_text(found: Difference) -> str:
    """Lines for a terminal: ``-`` for what goes, ``+`` for what comes, as in a diff."""
    lines = [f"- {found.before.plan}", f"+ {found.after.plan}", ""]
    old, new = _states(found.before), _states(found.after)
    for mark, streams, states in (
        (" ", found.kept, new),
        ("-", found.dropped, old),
        ("+", found.added, new),
    ):
        for each in streams:
            state = states[each]
            lines.append(
                f"{mark} state {each}: {count_text(state.rows)} rows, {memory_text(state.memory)}"
            )
    if found.before.plan == found.after.plan:
        lines.append("  the plans are the same")
    for name, write, before, after in (
        ("CPU", share_text, found.before.cost.cpu, found.after.cost.cpu),
        ("memory", memory_text, found.before.cost.memory, found.after.cost.memory),
    ):
        ratio = f" ({three_digits(after / before)} times)" if before else ""
        lines.append(f"  {name}: {write(before)} → {write(after)}{ratio}")
    return "\n".join(lines)


def _states(explanation: Explanation) -> dict[StreamSet, Operator]:
    return {
        each.streams: each
        for each in explanation.operators()
        if each.kind in ("join", "mjoin") and each.rows is not None
    }

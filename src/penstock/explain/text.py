"""An explanation as text: the tree with its costs, the limits, the reason, the alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.explain.explanation import Explanation, Operator
from penstock.explain.front_text import front_text
from penstock.explain.observation import Observation
from penstock.explain.quantities import count_text, memory_text, share_text
from penstock.planning.limits import three_digits

_WIDEST = 48
_HEADINGS = ("", "", "tuples/s", "rows", "CPU", "memory")


def text(explanation: Explanation, front: bool = False) -> str:
    """Lines for a terminal; ``front`` adds the front of CPU against memory as a picture."""
    analyzed = explanation.observed is not None
    lines = [f"plan {explanation.plan}", f"why  {explanation.why}"]
    lines += [line for line in (bottleneck(explanation),) if line]
    lines.append("")
    rows = [_headings(analyzed)]
    for number, root in enumerate(explanation.roots):
        lead = "" if number == 0 else "− "
        rows += _tree(root, lead, " " * len(lead), analyzed)
    rows.append(_cells("output", explanation.output, analyzed))
    lines += _aligned(rows)
    lines += ["", *_totals(explanation)]
    orders = [
        (f"({each.name})", order)
        for root in explanation.roots
        for each in root.walk()
        for order in each.orders
    ]
    if orders:
        lines += ["", "probe orders", *(f"  {name}  {order}" for name, order in orders)]
    if explanation.alternatives:
        lines += ["", "alternatives", *_aligned(_alternatives(explanation), indent=2)]
    if front and explanation.front:
        lines += ["", *front_text(explanation).splitlines()]
    if explanation.assumptions:
        lines += ["", "assumed, as statistics do not say"]
        lines += [f"  {each}" for each in explanation.assumptions]
    return "\n".join(line.rstrip() for line in lines)


def _headings(analyzed: bool) -> tuple[str, ...]:
    if not analyzed:
        return _HEADINGS
    pairs = tuple(heading for each in _HEADINGS[2:] for heading in (each, "estimate"))
    return _HEADINGS[:2] + pairs


def _tree(operator: Operator, lead: str, below: str, analyzed: bool) -> Iterator[tuple[str, ...]]:
    yield _cells(f"{lead}{_label(operator)}", operator, analyzed)
    last = len(operator.inputs) - 1
    for position, each in enumerate(operator.inputs):
        fork, more = ("└─ ", "   ") if position == last else ("├─ ", "│  ")
        yield from _tree(each, below + fork, below + more, analyzed)


def _label(operator: Operator) -> str:
    return operator.name if operator.kind == "window" else f"{operator.kind} ({operator.name})"


def _cells(label: str, operator: Operator, analyzed: bool) -> tuple[str, ...]:
    estimates = (
        count_text(operator.rate),
        "" if operator.rows is None else count_text(operator.rows),
        share_text(operator.cpu),
        memory_text(operator.memory) if operator.memory else "",
    )
    details = _shortened(operator.details)
    if not analyzed:
        return label, details, *estimates
    seen = operator.observed or Observation()
    found = (
        "" if seen.rate is None else count_text(seen.rate),
        "" if seen.rows is None else count_text(seen.rows),
        "" if seen.cpu is None else share_text(seen.cpu),
        "" if seen.memory is None else memory_text(seen.memory),
    )
    both = tuple(cell for pair in zip(found, estimates, strict=True) for cell in pair)
    return label, details, *both


def _shortened(details: str) -> str:
    """As many predicates as fit, and how many more there are."""
    parts = details.split(" AND ")
    kept = len(parts)
    while kept > 1 and len(" AND ".join(parts[:kept])) > _WIDEST:
        kept -= 1
    more = f" AND {len(parts) - kept} more" if kept < len(parts) else ""
    return " AND ".join(parts[:kept]) + more


def _totals(explanation: Explanation) -> list[str]:
    cost, limits, seen = explanation.cost, explanation.limits, explanation.observed
    rows: list[tuple[str, ...]] = []
    for name, used, limit, write, observed in (
        ("total CPU", cost.cpu, limits.cpu, share_text, seen.cpu if seen else None),
        ("total memory", cost.memory, limits.memory, memory_text, seen.memory if seen else None),
    ):
        against = "no limit"
        if limit is not None:
            mark = "within" if used <= limit else "EXCEEDS"
            against = f"{mark} the limit of {write(limit)} ({three_digits(used / limit)} times)"
        if observed is not None:
            rows.append((name, write(observed), f"estimate {write(used)}", against))
        else:
            rows.append((name, write(used), against))
    return _aligned(rows)


def bottleneck(explanation: Explanation) -> str:
    """The operator that takes most of the CPU, in a sentence: by the clock if it was measured."""
    operators = [each for each in explanation.operators() if each.kind != "output"]
    measured = [each for each in operators if each.observed and each.observed.cpu]
    if measured:
        how, cpu = "measured", [(each.observed or Observation()).cpu or 0.0 for each in measured]
    else:
        how, cpu = "estimated", [each.cpu for each in operators]
    whole = sum(cpu)
    if whole <= 0:
        return ""
    taken, place = max((each, place) for place, each in enumerate(cpu))
    most = (measured or operators)[place]
    kind = "the window of" if most.kind == "window" else f"the {most.kind}"
    name = most.name if most.kind == "window" else f"({most.name})"
    part = f"{100 * taken / whole:.0f} %"
    return f"busiest  {kind} {name} takes {part} of the {how} CPU, {share_text(taken)} of a core"


def _alternatives(explanation: Explanation) -> list[tuple[str, ...]]:
    """One line for each plan, with all the planners that chose it."""
    names: dict[str, list[str]] = {}
    for each in explanation.alternatives:
        names.setdefault(each.plan, []).append(each.name)
    rows: list[tuple[str, ...]] = []
    for each in explanation.alternatives:
        if names[each.plan][0] != each.name:
            continue
        same = "  ← this plan" if each.plan == explanation.outline else ""
        mark = "" if each.qualified else "  not qualified"
        cpu, memory = share_text(each.cost.cpu), memory_text(each.cost.memory)
        planners = ", ".join(names[each.plan])
        rows.append((planners, f"CPU {cpu}", f"memory {memory}", f"{each.plan}{same}{mark}"))
    return rows


def _aligned(rows: Sequence[tuple[str, ...]], indent: int = 0) -> list[str]:
    """Columns below each other; those that look like numbers to the right."""
    count = max(len(row) for row in rows)
    widths = [max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if count > 4 and i > 1 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append((" " * indent + "  ".join(cells)).rstrip())
    return lines

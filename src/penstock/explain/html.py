"""An explanation, or the metrics of an engine, as HTML: what a notebook shows of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from penstock.explain.quantities import count_text, memory_text, share_text
from penstock.plan.picture import Box, tree_svg
from penstock.plan.plan import Plan

if TYPE_CHECKING:
    from penstock.explain.explanation import Explanation, Operator


def explanation_html(explanation: Explanation) -> str:
    """The tree with its costs, and the alternatives as a table."""
    output = explanation.output
    roots = [_box(root) for root in explanation.roots]
    top = Box("results", _facts(output), (roots[0],))
    picture = tree_svg([top, *roots[1:]], f"plan {explanation.plan}")
    seen = explanation.observed
    facts = [
        ("plan", explanation.plan),
        ("why", explanation.why),
        ("CPU", share_text(explanation.cost.cpu)),
        ("memory", memory_text(explanation.cost.memory)),
    ]
    if seen is not None and seen.memory is not None:
        facts.append(("memory seen", memory_text(seen.memory)))
    others = [
        (each.name, share_text(each.cost.cpu), memory_text(each.cost.memory), each.plan)
        for each in explanation.alternatives
    ]
    return "".join(
        (
            "<div>",
            _table((), facts),
            picture,
            _table(("planner", "CPU", "memory", "plan"), others) if others else "",
            "</div>",
        )
    )


def metrics_html(plan: Plan, metrics: Mapping[str, Any]) -> str:
    """The plan, and what each window and join holds and did."""
    totals = ("rows", "results", "late")
    states = metrics["state"]["joins"]
    rows = [
        (alias, f"{window['rows']:,}", memory_text(window["bytes"]), "", "")
        for alias, window in metrics["state"]["windows"].items()
    ]
    for join in metrics["joins"]:
        state = states.get(join["streams"])
        rows.append(
            (
                join["plan"],
                f"{state['rows']:,}" if state else "",
                memory_text(state["bytes"]) if state else "",
                f"{join['made']:,}",
                f"{join['probes']:,}",
            )
        )
    return "".join(
        (
            "<div>",
            plan.svg(),
            _table((), [(name, f"{metrics[name]:,}") for name in totals]),
            _table(("", "rows held", "memory", "made", "probes"), rows),
            "</div>",
        )
    )


def _box(operator: Operator) -> Box:
    kind = operator.kind
    title = operator.name if kind == "window" else f"{kind} ({operator.name})"
    return Box(title, _facts(operator), tuple(_box(each) for each in operator.inputs))


def _facts(operator: Operator) -> tuple[str, ...]:
    lines = [f"{count_text(operator.rate)}/s, CPU {share_text(operator.cpu)}"]
    if operator.rows is not None:
        lines.append(f"{count_text(operator.rows)} rows, {memory_text(operator.memory)}")
    seen = operator.observed
    if seen is not None:
        parts = [] if seen.rate is None else [f"{count_text(seen.rate)}/s"]
        parts += [] if seen.rows is None else [f"{count_text(seen.rows)} rows"]
        lines += [f"seen: {', '.join(parts)}"] if parts else []
    return tuple(lines)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"

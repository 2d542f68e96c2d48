"""An explanation as a Mermaid flowchart: streams on the left, the answer on the right."""

from __future__ import annotations

from penstock.explain.explanation import Explanation, Operator
from penstock.explain.quantities import count_text, memory_text, share_text


def mermaid(explanation: Explanation) -> str:
    """The text of a flowchart."""
    lines = ["flowchart LR"]
    numbers: dict[int, str] = {}

    def node(operator: Operator) -> str:
        name = numbers.setdefault(id(operator), f"n{len(numbers)}")
        facts = [_escaped(_title(operator)), _escaped(operator.details)]
        facts.append(f"{count_text(operator.rate)}/s, CPU {share_text(operator.cpu)}")
        if operator.rows is not None:
            facts.append(f"{count_text(operator.rows)} rows, {memory_text(operator.memory)}")
        seen = operator.observed
        if seen is not None:
            parts = []
            if seen.rate is not None:
                parts.append(f"{count_text(seen.rate)}/s")
            if seen.rows is not None:
                parts.append(f"{count_text(seen.rows)} rows")
            if seen.memory is not None:
                parts.append(memory_text(seen.memory))
            if parts:
                facts.append(f"seen: {', '.join(parts)}")
        opened, closed = ("[(", ")]") if operator.kind == "window" else ("[", "]")
        lines.append(f'  {name}{opened}"{"<br/>".join(facts)}"{closed}')
        for each in operator.inputs:
            below = node(each)
            lines.append(f"  {below} --> {name}")
        return name

    ends = [node(root) for root in explanation.roots]
    out = node(explanation.output)
    for number, end in enumerate(ends):
        lines.append(f"  {end} --> {out}" if number == 0 else f"  {end} -- minus --> {out}")
    return "\n".join(lines)


def _title(operator: Operator) -> str:
    return operator.name if operator.kind == "window" else f"{operator.kind} ({operator.name})"


def _escaped(text: str) -> str:
    for mark, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(mark, entity)
    return text

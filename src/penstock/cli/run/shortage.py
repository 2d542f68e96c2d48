"""Whether a query runs short of CPU, since when and at what price, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.cli.run.words import short, span


def shortage(cells: Iterable[Mapping[str, Any]]) -> str:
    """What the ``overload`` of the metrics of some cells comes to; empty if none is short."""
    told = [each for each in cells if each.get("short")]
    if not told:
        return ""
    seconds = max(each["short_for"] for each in told)
    parts = [f"for {span(seconds)}" if seconds else "since this batch"]
    lost = sum(each["lost"]["results"] for each in told)
    owed = sum(each["debt"]["probes"] for each in told)
    if lost:
        parts.append(f"about {short(lost)} results lost")
    if owed:
        age = max(each["debt"]["age"] for each in told)
        parts.append(f"{short(owed)} probes owed, up to {span(age)} old")
    if told[0]["policy"] == "exact":
        parts.append("falling behind")
    return ", ".join(parts)

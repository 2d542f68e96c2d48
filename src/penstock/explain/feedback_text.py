"""What demand feedback did, for people: the end of EXPLAIN ANALYZE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.explain.quantities import count_text


def feedback_text(metrics: Mapping[str, Any]) -> str:
    """Lines about the ``feedback`` of an engine's metrics; empty if nobody ever had to wait."""
    feedback = metrics["feedback"]
    tried = [guard for guard in feedback["guards"] if guard["on"] or guard["tested"]]
    surpassed = {alias: gone for alias, gone in feedback["surpassed"].items() if gone}
    if not tried and not surpassed:
        return ""
    lines = [
        f"feedback      {count_text(feedback['made'])} partial results made, about "
        f"{count_text(feedback['avoided'])} avoided"
    ]
    for guard in tried:
        words = [
            f"{count_text(guard['slept'])} slept",
            f"{count_text(guard['resumed'])} were woken",
            f"{count_text(guard['asleep'])} asleep now",
        ]
        if guard.get("returned"):
            words.append(f"{count_text(guard['returned'])} went back to sleep")
        if guard["dropped"]:
            words.append(f"{count_text(guard['dropped'])} dropped for good")
        state = "" if guard["on"] else "  (off: it did not pay)"
        lines.append(
            f"  {guard['input']} waits for {guard['waits_for']}: of {count_text(guard['tested'])} "
            f"rows {', '.join(words)}{state}"
        )
    for alias, gone in surpassed.items():
        lines.append(
            f"  {alias}: {count_text(gone)} rows went as MIN and MAX need later ones alone"
        )
    return "\n".join(lines)

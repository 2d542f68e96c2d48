"""How a plan came to be, for people: the changes that the controller or somebody made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.explain.quantities import share_text

SHOWN = 8
_WHO = {"set": "by hand", "pin": "pinned", "undo": "undone"}


def history_text(metrics: Mapping[str, Any]) -> str:
    """Lines about the changes in an engine's metrics, the latest last; empty if there were none."""
    control = metrics["control"]
    changes = control["changes"]
    if not changes:
        return ""
    looks = f"{control['looks']} looks, {control['migrations']} changes by the controller"
    lines = [f"history       {looks}{', pinned' if control['pinned'] else ''}"]
    for change in changes[-SHOWN:]:
        numbers = change["numbers"]
        cpu = ""
        if "rival_cpu" in numbers:
            cpu = f", CPU {share_text(numbers['cpu'])} → {share_text(numbers['rival_cpu'])}"
        how = f", by {change['strategy']}" if change.get("strategy") else ""
        why = _WHO.get(change["action"], change["reason"])
        lines.append(
            f"  at {change['at']:.1f} s  {change['before']} → {change['plan']}  {why}{cpu}{how}"
        )
    return "\n".join(lines)

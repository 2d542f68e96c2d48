"""Which way pushes went, in words, if some were not compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def execution_text(metrics: Mapping[str, Any]) -> str:
    """Pushes that went the reference way and why; empty if all were compiled."""
    execution = metrics["execution"]
    if not execution["reference"]:
        return ""
    lines = [f"pushes: {execution['compiled']:,} compiled, {execution['reference']:,} step by step"]
    reasons = sorted(execution["reasons"].items(), key=lambda each: -each[1])
    lines += [f"  {count:,} because of {why}" for why, count in reasons]
    return "\n".join(lines)

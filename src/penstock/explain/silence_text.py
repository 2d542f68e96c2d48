"""Streams that are silent while all state waits for them, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def silence_text(metrics: Mapping[str, Any]) -> str:
    """One line for each silent stream in the metrics of an engine; empty if there is none."""
    return "\n".join(
        f"silent: {silence(source, seconds)}" for source, seconds in metrics["silent"].items()
    )


def silence(source: str, seconds: float) -> str:
    """A stream that is ``seconds`` of event time behind the newest."""
    return (
        f"{source} is {seconds:,.0f} s of event time behind the newest stream, and no window lets "
        "a row go before it moves on; idle says how far it may fall behind"
    )

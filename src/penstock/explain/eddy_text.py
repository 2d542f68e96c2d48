"""What an eddy did, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def eddy_text(metrics: Mapping[str, Any]) -> str:
    """A line about the eddy in an engine's metrics; empty if there is none."""
    control = metrics["control"]
    eddy = control.get("eddy")
    if eddy is None:
        return ""
    held = ", its routes are held" if control["pinned"] or not control["adapt"] else ""
    states = ""
    if eddy["kind"] != "cacq":
        states = f"; {eddy['promoted']} states promoted, {eddy['demoted']} demoted"
    done = f"{eddy['reviews']} reviews, {eddy['changes']} changes of route{states}"
    return f"eddy          {eddy['kind']}: {done}{held}"

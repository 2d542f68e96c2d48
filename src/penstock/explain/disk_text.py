"""Rows beyond memory, as EXPLAIN tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.planning.limits import size_text


def disk_text(metrics: Mapping[str, Any]) -> str:
    """What is on disk, and what was read from there; empty if nothing is, or was refused."""
    disk = metrics["state"].get("disk")
    if not disk or not (disk["files"] or disk["refused"]):
        return ""
    lines = []
    if disk["files"]:
        windows = metrics["state"]["windows"]
        away = [alias for alias, window in windows.items() if window.get("on_disk")]
        lines.append(
            f"memory is full: {size_text(disk['bytes'])} of {', '.join(away) or 'windows'} are on "
            f"disk, in {disk['folder']}; {disk['rows_back']:,} values were read from there"
        )
    if disk["refused"]:
        lines.append(f"no more rows go to disk: {disk['refused']}")
    return "\n".join(lines)

"""Cells that run short of CPU, summed up: how many, since when, and at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.ui.number import number


def is_short(cell: Mapping[str, Any]) -> bool:
    """Whether ``cell``, of a micro-batch, needs more than it may have."""
    return bool(_overload(cell).get("short"))


def shortage(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the cells of a micro-batch say about overload together; empty if nothing limits them."""
    limited = [each for cell in cells if (each := _overload(cell)).get("budget")]
    if not limited:
        return {}
    short = [each for each in limited if each.get("short")]
    debts = [_inside(each, "debt") for each in limited]
    losses = [_inside(each, "lost") for each in limited]
    return {
        "cells": len(limited),
        "short": len(short),
        "policy": str(limited[0].get("policy", ""))[:20],
        "budget": str(limited[0]["budget"])[:200],
        "seconds": max((number(each.get("short_for")) for each in short), default=0.0),
        "needed": sum(number(each.get("needed")) for each in short),
        "allowed": sum(number(each.get("allowed")) for each in short),
        "lost": sum(number(each.get("results")) for each in losses),
        "error": sum(number(each.get("error")) for each in losses),
        "owed": sum(number(each.get("probes")) for each in debts),
        "age": max(number(each.get("age")) for each in debts),
        "stale": sum(number(each.get("stale")) for each in limited),
        **_most_of(short),
    }


def _most_of(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What takes the most CPU in ``cells``, each of which counts the same, and its part of it."""
    parts: dict[str, float] = {}
    for each in cells:
        for name, part in _inside(each, "parts").items():
            parts[str(name)[:40]] = parts.get(str(name)[:40], 0.0) + number(part)
    if not parts:
        return {}
    most = max(parts, key=lambda name: parts[name])
    return {"most": most, "most_part": parts[most] / max(1e-9, sum(parts.values()))}


def _overload(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    return _inside(cell, "overload")


def _inside(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}

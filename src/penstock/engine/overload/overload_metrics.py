"""What a person wants to know of an overload policy, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from penstock.engine.overload.limited_join import LimitedJoin
from penstock.engine.overload.push_at_hand import PushAtHand


def overload_metrics(
    join: LimitedJoin, push: PushAtHand, parts: Mapping[str, float]
) -> dict[str, Any]:
    """What is limited and lost after a ``push``, whose time has ``parts``. Times are in seconds,
    instants in ticks."""
    since, allocation = join.book.since, join.shares.allocation
    missed, second = join.losses.missed, join.second
    return {
        "policy": join.option.policy,
        "budget": str(join.budget),
        "short": since is not None,
        "since": since,
        "short_for": 0.0 if since is None else (push.now - since) / second,
        "needed": _plain(push.need),
        "allowed": _plain(max(0.0, push.grant.probes)),
        **join.book.totals,
        "lost": {"results": missed.results, "error": missed.error},
        "staleness": {a: age / second for a, age in join.freshness.ages.items()},
        "freshness": {a: f / second for a, f in join.freshness.asked.items()},
        "left_out": dict(join.door.all_left_out),
        "keys": join.door.length,
        "parts": parts,
        "debt": join.debts.measure(push.now, second),
        "shares": {str(o): each for o, each in join.shares.shares.items()} if since else {},
        "allocation": str(allocation) if since and allocation else None,
        "events": list(join.book.events),
    }


def _plain(value: float) -> int | None:
    return round(value) if math.isfinite(value) else None

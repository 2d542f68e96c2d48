"""GH-WMSCP: greedy cover of the states that must be refreshed (JAQPOT Problem 2).

A path covers the states that it feeds, with as many tuples per probing tuple as arrive there. The
greedy heuristic of Yang and Leung takes, again and again, the path with the most cover per
probe. Cover is counted in shares of what a state needs, for states that still need some; the
paper leaves the measure open, and counting tuples would favour large states over starved ones.

Here tuples are fractional, as in GrePP: a path is taken until a state is covered or its stream is
used up. Scores change only when a state is covered, so the whole takes O((m + k)²) for m states and
k streams. Paths are taken whole, up to the root, as in the paper;
:mod:`~penstock.overload.tree_greedy` shows that neither that nor the set cover is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.overload.path_model import PathModel
from penstock.plan.stream_set import StreamSet

_SLIGHT = 1e-12


@dataclass(frozen=True, slots=True)
class Cover:
    """Tuples per second of each stream that probe for freshness, and what they cost."""

    probing: Mapping[str, float]
    cost: float


def gh_wmscp(model: PathModel, needed: Mapping[StreamSet, float]) -> Cover:
    """Paths that refresh each state at its rate in ``needed``, or as nearly as tuples arrive."""
    lacking = {state: rate for state, rate in needed.items() if rate > 0}
    feeds = {
        path.stream: {s: made for s, made in path.refreshed if s in lacking and made > 0}
        for path in model.paths
    }
    feeding: dict[StreamSet, list[str]] = {state: [] for state in lacking}
    for stream, fed in feeds.items():
        for state in fed:
            feeding[state].append(stream)
    paths = {path.stream: path for path in model.paths}
    shares = {
        stream: {state: made / needed[state] for state, made in fed.items()}
        for stream, fed in feeds.items()
    }
    score = {stream: sum(share.values()) for stream, share in shares.items()}
    probing = dict.fromkeys(paths, 0.0)
    usable = {stream for stream, path in paths.items() if path.rate > 0 and feeds[stream]}
    while lacking and usable:
        best = max(usable, key=lambda stream: (score[stream] / paths[stream].cost, stream))
        open_states = [state for state in feeds[best] if state in lacking]
        if not open_states:
            usable.remove(best)
            continue
        left = paths[best].rate - probing[best]
        more = min(left, min(lacking[state] / feeds[best][state] for state in open_states))
        probing[best] += more
        if more >= left:
            usable.remove(best)
        for state in open_states:
            lacking[state] -= more * feeds[best][state]
            if lacking[state] <= _SLIGHT * needed[state]:
                del lacking[state]
                for stream in feeding[state]:
                    score[stream] -= shares[stream][state]
    cost = sum(probing[stream] * path.cost for stream, path in paths.items())
    return Cover(probing, cost)

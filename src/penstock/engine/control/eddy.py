"""Eddies: plans that choose their own routes, and change them as the streams change.

JISC compares itself with three (sections 3.1, 3.2 and 4.6). In each, an eddy decides where rows go
next, and stored state stands beside it instead of inside join operators.

- ``cacq``: one SteM per stream (its window with the indexes that somebody probes) and nothing
  stored in between. That is an mjoin whose probe orders are the eddy's to choose: a SteM's insert
  is an append to the window, its probe a step of a probe order, and the bits that tell where a
  tuple has been are the position in that order, kept once per batch instead of once per tuple. To
  change a route costs nothing, since nothing depends on it.
- ``stairs``: STAIRs hold intermediate results, one for each join below the root of a tree, bushy or
  not (:mod:`penstock.engine.control.stairs`). On a change of tree, what the new one does not have
  is demoted (dropped), and what it lacks is promoted (made), all at once: moving state.
- ``stairs-lazy``: JISC on STAIRs (section 4.6). Promotion waits until somebody probes for a key.

The eddy looks at its routes from time to time, counted in rows; no clock is read, and the same
input gives the same routes. A route is changed when another promises to make a fifth fewer partial
results (:mod:`penstock.engine.control.routing`), and reviews that change nothing become rarer.

**Limits.** STAIRs have the memory that a limit leaves beside the windows. When what they hold is
more, by measure, the largest are demoted after that push. A tree is promoted only if it is
estimated to leave some of the room free, and each demotion for want of room doubles the estimates:
an eddy that is wrong about them does not go to and fro. CACQ holds nothing that could be let go of.

**Feedback through the eddy** (JIT, section V: every SteM is consumer and producer, and a
non-demanded sub-tuple goes through the eddy to all SteMs that may hold it). Here a guard stands
before a SteM and asks whether a row has a partner in another SteM. Whatever its route, a row is in
no result without such a partner; so guards do not depend on routes, and re-routing leaves them and
those who wait where they are. Which SteM may wait for which is a fixed order of the streams
(:mod:`penstock.engine.feedback.edge`), not the order of the route: otherwise two could wait for
each other. With STAIRs the guards of the tree are made anew on a change, as for any change of plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.control.routing import Counts, Routing, counts_of
from penstock.engine.control.stairs import (
    Sizes,
    best_tree,
    beyond,
    is_binary,
    rows_of,
    sizes_of,
    states_of,
    without,
)
from penstock.engine.tree.join_tree import JoinTree
from penstock.plan.plan import Join, Node, Plan
from penstock.plan.stream_set import StreamSet
from penstock.planning.limits import size_text, three_digits

STRATEGIES = {"cacq": "reroute", "stairs": "moving-state", "stairs-lazy": "jisc"}
"""The strategy by which each changes its routes."""

_FIRST = 1024
"""Rows before the first review."""
_INTERVAL = 16384
"""Rows from one review to the next, at least, and for each stream:"""
_PER_STREAM = 2048
_LONGEST = 8
"""Times longer that an interval becomes while reviews change nothing."""
_GAIN = 0.8
"""The share of the partial results of the old route that a new one may promise, at most."""
_FILLED = 0.8
"""The share of the room for states that a tree may be estimated to fill before it is promoted."""
_ROW_BYTES = 16
"""Bytes of a row of a state for each of its streams and for two more: number, index, free space."""
_MOST_CAUTION = 64.0


@dataclass(frozen=True, slots=True)
class Rerouting:
    """Other routes, and why."""

    plan: Plan
    reason: str
    numbers: Mapping[str, float]


class Eddy:
    """Chooses the routes of all blocks of a query."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.gain = _GAIN
        self.due = _FIRST
        """Rows in all after which there is a review."""
        self.reviews = 0
        self.changes = 0
        """Changes of routes so far."""
        self.promoted = 0
        """States that were begun so far."""
        self.demoted = 0
        """States that were let go of so far."""
        self._rows = 0
        self._patience = 1
        self._caution = 1.0
        """Times more bytes that states are taken to need than is estimated."""
        self._empty: Sizes = {}
        """Bytes that a state took beyond its rows when there was no room for it."""
        self._before: dict[int, Counts] = {}
        self._whole: dict[int, tuple[Node, Node]] = {}
        """Of each block, the tree with all states and the one that is left of it."""

    @property
    def strategy(self) -> str:
        """How routes are changed."""
        return STRATEGIES[self.kind]

    def to_json(self) -> dict[str, int]:
        """What was done so far."""
        names = ("reviews", "changes", "promoted", "demoted")
        return {name: getattr(self, name) for name in names}

    def load(self, counts: Mapping[str, int]) -> None:
        """Go on from what :meth:`to_json` wrote down."""
        for name in self.to_json().keys() & counts.keys():
            setattr(self, name, counts[name])

    def review(
        self, rows: int, trees: Sequence[JoinTree], room: float = math.inf
    ) -> Rerouting | None:
        """``rows`` more have come: other routes, if they are worth it, or if ``room`` (bytes) is
        less than what states take."""
        self._rows += rows
        if room < math.inf and sum([s.nbytes for tree in trees for s in tree.states]) > room:
            return self._demoted(trees, room)
        if self._rows < self.due:
            return None
        self.reviews += 1
        routings = [Routing(tree, self._before.get(n, {})) for n, tree in enumerate(trees)]
        found = self._rerouted(trees, routings, room)
        self._patience = 1 if found else min(2 * self._patience, _LONGEST)
        streams = sum(len(tree.leaves) for tree in trees)
        self.due = self._rows + max(_INTERVAL, _PER_STREAM * streams) * self._patience
        self.begin_period(trees)
        return found

    def begin_period(self, trees: Sequence[JoinTree]) -> None:
        """Count from here on."""
        self._before = {number: counts_of(tree) for number, tree in enumerate(trees)}

    def _demoted(self, trees: Sequence[JoinTree], room: float) -> Rerouting | None:
        """What is left when the largest states go until the rest has ``room``."""
        held: Sizes = {}
        for state in [state for tree in trees for state in tree.states]:
            streams, nbytes = state.streams, float(state.nbytes)
            held[streams] = nbytes
            self._empty[streams] = max(0.0, nbytes - 2 * _estimate(streams, len(state.rows)))
        self._caution = min(_MOST_CAUTION, 2 * self._caution)
        demoted = beyond(held, room)
        taken, room = sum(held.values()), max(0.0, room)
        reason = f"states take {size_text(taken)}, and windows leave {size_text(room)} for them"
        roots = [without(tree.root, demoted) for tree in trees]
        return self._changed(trees, roots, reason, {"state_bytes": taken, "room": room})

    def _rerouted(
        self, trees: Sequence[JoinTree], routings: Sequence[Routing], room: float
    ) -> Rerouting | None:
        """Other routes after a review."""
        if self.kind == "cacq":
            found = [self._orders(*each) for each in zip(trees, routings, strict=True)]
            name, what = "partial_results", "partial results for a row of each stream"
        else:
            found = self._trees(trees, routings, room)
            name, what = "state_rows", "rows in states"
        roots, before, after = [each[0] for each in found], 0.0, 0.0
        for _, old, new in found:
            before, after = before + old, after + new
        reason = f"{three_digits(after)} {what} instead of {three_digits(before)}"
        if self.kind != "cacq" and after > before:
            reason = f"there is room for {three_digits(after)} {what}"
        return self._changed(trees, roots, reason, {f"{name}_before": before, name: after})

    def _changed(
        self,
        trees: Sequence[JoinTree],
        roots: Sequence[Node],
        reason: str,
        numbers: Mapping[str, float],
    ) -> Rerouting | None:
        """Going over from ``trees`` to ``roots``; None if they are the same."""
        if all(root == tree.root for root, tree in zip(roots, trees, strict=True)):
            return None
        old: set[StreamSet] = set().union(*(states_of(tree.root) for tree in trees))
        new: set[StreamSet] = set().union(*(states_of(root) for root in roots))
        self.changes += 1
        self.promoted += len(new - old)
        self.demoted += len(old - new)
        for does, which in (("demotes", old - new), ("promotes", new - old)):
            if which:
                reason += f"; {does} {', '.join(sorted(map(str, which)))}"
        moved = {"promoted": float(len(new - old)), "demoted": float(len(old - new))}
        return Rerouting(
            Plan(roots[0], tuple(roots[1:]), self.kind),
            reason,
            {**numbers, **moved} if self.kind != "cacq" else numbers,
        )

    def _orders(self, tree: JoinTree, routing: Routing) -> tuple[Node, float, float]:
        """The mjoin with the better routes in the place of those that are worse; and the partial
        results of before, and of then."""
        root = tree.root
        if not isinstance(root, Join) or len(tree.leaves) < 3:
            return root, 0.0, 0.0
        names = [min(each.streams) for each in root.inputs]
        running = [[names[place] for place, _ in steps] for steps in tree.operators[-1].steps]
        orders, before, after = [], 0.0, 0.0
        for position, start in enumerate(names):
            best, present = routing.route(start), running[position]
            worse = routing.partial_results(start, present)
            better = routing.partial_results(start, best)
            before += worse
            is_kept = bool(root.orders) and better > self.gain * worse
            after += worse if is_kept else better
            order = present if is_kept else best
            orders.append(tuple(names.index(alias) for alias in order))
        return Join(root.inputs, tuple(orders)), before, after

    def _trees(
        self, trees: Sequence[JoinTree], routings: Sequence[Routing], room: float
    ) -> list[tuple[Node, float, float]]:
        """For each block, the tree with the smallest states, if the present one is much larger, and
        without those that have no ``room``; and the rows of before, and of then."""
        whole = [
            self._grown(*each) for each in zip(range(len(trees)), trees, routings, strict=True)
        ]
        needed: Sizes = {}
        for root, routing in zip(whole, routings, strict=True):
            for streams, rows in sizes_of(root, routing).items():
                needed[streams] = self._caution * _estimate(streams, rows)
                needed[streams] += self._empty.get(streams, 0.0)
        demoted = beyond(needed, _FILLED * room)
        found = []
        for number, (root, tree) in enumerate(zip(whole, trees, strict=True)):
            left = without(root, demoted)
            if states_of(left) < states_of(tree.root) <= states_of(root):
                left = tree.root  # It fits, whatever was estimated.
            self._whole[number] = (root, left)
            routing = routings[number]
            found.append((left, rows_of(tree.root, routing), rows_of(left, routing)))
        return found

    def _grown(self, number: int, tree: JoinTree, routing: Routing) -> Node:
        """The tree to have, if there is room for all of it."""
        if len(tree.leaves) < 3:
            return tree.root
        whole, left = self._whole.get(number, (None, None))
        present = whole if whole is not None and left == tree.root else tree.root
        best = best_tree(routing, list(tree.leaves))
        if not is_binary(present):
            return best
        if states_of(best) == states_of(present):
            return present
        worth = rows_of(best, routing) < self.gain * rows_of(present, routing)
        return best if worth else present


def _estimate(streams: StreamSet, rows: float) -> float:
    """Bytes of a state with so many rows."""
    return _ROW_BYTES * (len(streams) + 2) * rows

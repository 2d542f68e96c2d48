"""Parallel track: older plans run beside the new one until they have nothing left to say.

Zhu, Rundensteiner and Heineman (SIGMOD 2004), as JISC (section 3.3) describes and compares it. At
the transition the new plan starts with empty states and takes in only what comes from then on; the
old plan goes on with everything. So the old plan, which sees all rows, makes every result; the new
one makes those that consist of new rows alone. These are made twice, and the copy of the old plan
is dropped at the output (duplicate elimination). When the last row from before the transition has
died, every result consists of new rows, and the old plan is discarded.

**What is new** is a number: a row of stream s is new to a track if it stands at or behind
``since[s]``, where the window of s ended at the transition. Windows are shared by all tracks, and a
track sees them from its ``since`` on (:attr:`~penstock.engine.state.rows.Rows.low`). Hence no
result has to be remembered in order to be recognised as a duplicate. Static relations are new to
everybody: they never die, and nothing that is not yet known will ever come of them.

**Transitions may overlap**: then there are three tracks or more, each with a later ``since``, and a
result is left to the newest track that sees it whole. Each result is thus given out once: the
tracks that see it whole are the older ones up to that track, and all but the last drop it.

**When to discard.** In the paper every operator of the old plan checks from time to time whether
its state still has an old entry. Here an entry dies with its first row, so it is enough to look at
the windows: once per push, one comparison per stream. A window that never lets go (UNBOUNDED) would
keep the old plan for ever, so this strategy refuses it (:func:`never_ends`).

The price is what the paper says: every row is worked off by every track, and each has states of its
own. Feedback goes on in the oldest track; the others use none until they are alone, since an input
that lacks the old rows cannot say that somebody has no partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.composite_state import CompositeState
from penstock.engine.state.composites import Composites, concatenate
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.tree.join_tree import JoinTree, Marks

Int64s = NDArray[np.int64]


def since_now(leaves: Mapping[str, LeafWindow]) -> dict[str, int]:
    """Where the windows of streams end now: rows from there on are new."""
    return {alias: leaf.rows.head for alias, leaf in leaves.items() if not leaf.stream.is_static}


def never_ends(leaves: Iterable[LeafWindow]) -> str | None:
    """A stream whose rows never die, if there is one: old and new plan would run for ever."""
    return next((leaf.stream.alias for leaf in leaves if leaf.is_unbounded), None)


class ParallelTracks:
    """The older tracks beside a newer plan, the oldest first."""

    def __init__(self, old: JoinTree) -> None:
        """``old`` was the newest so far; the older tracks that it had are taken over."""
        self.tracks: list[JoinTree] = [*(old.older.tracks if old.older else ()), old]
        old.older = None
        self.duplicates = 0
        """Results that an older track has made for nothing."""
        self._slice = (0, 0, 0, 0)

    @property
    def oldest(self) -> JoinTree:
        """The track that sees everything."""
        return self.tracks[0]

    @property
    def kept(self) -> list[CompositeState]:
        """The states of all these tracks."""
        return [state for track in self.tracks for state in track.kept]

    def begin_slice(self, first: int, last: int, count: int, watermark: int) -> None:
        """As for a tree: what comes next. Each track is told when it is its turn."""
        self._slice = (first, last, count, watermark)

    def process(self, newest: JoinTree, deltas: Mapping[str, Composites]) -> Composites:
        """The results of ``deltas`` from all tracks, each once."""
        tracks = [*self.tracks, newest]
        found = []
        with newest.completion.time:
            for track, later in pairwise(tracks):
                found.append(self._without(self._processed(track, deltas), later.since))
        found.append(self._processed(newest, deltas))
        return concatenate(found)

    def _processed(self, track: JoinTree, deltas: Mapping[str, Composites]) -> Composites:
        track.hidden.see_windows()
        track.look_at_slice(*self._slice)
        return track.process(deltas)

    def _without(self, made: Composites, since: Mapping[str, int]) -> Composites:
        """What a later track, which sees rows from ``since`` on, does not make."""
        if len(made) == 0:
            return made
        mine = np.zeros(len(made), np.bool_)
        for alias, first in since.items():
            mine |= made.ids[alias] < first
        left = np.flatnonzero(mine)
        if len(left) == len(made):
            return made
        self.duplicates += len(made) - len(left)
        return made.pick(left)

    def marks(self) -> list[Marks]:
        """Where the states of each track end now."""
        return [track.marks() for track in self.tracks]

    def undo(self, marks: list[Marks]) -> None:
        """Go back to ``marks``."""
        for track, each in zip(self.tracks, marks, strict=True):
            track.undo(each)

    def commit(self, newest: JoinTree) -> bool:
        """The push is done; whether ``newest`` is alone now."""
        for track in self.tracks:
            track.commit()
        while self.tracks:
            later = self.tracks[1] if len(self.tracks) > 1 else newest
            if any(later.leaves[s].rows.tail < first for s, first in later.since.items()):
                return False
            self.tracks.pop(0).dispose()
            later.since = {}
        return True

    def renumber(self, newest: JoinTree, alias: str, mapping: Int64s, first: int) -> None:
        """Rows of ``alias`` have new numbers, in the same order: so have the first new ones."""
        after = newest.leaves[alias].rows.head
        found = []
        for track in (*self.tracks, newest):
            if alias in track.since:
                later = mapping[max(0, track.since[alias] - first) :]
                left = later[later >= 0]
                found.append((track, int(left[0]) if len(left) else after))
        for track, since in found:  # All or, if there was no memory, none.
            track.since[alias] = since

    def dispose(self) -> None:
        """Another plan takes over from all of them."""
        for track in self.tracks:
            track.dispose()

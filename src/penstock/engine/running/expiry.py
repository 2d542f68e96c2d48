"""Expiry: when an engine drops what the watermark has passed or others surpass, and how.

Answers do not depend on it. So pushes of few rows do it now and then: when a 16th of what is held
has come, or a 16th of the longest window has passed, or somebody looks. Compiled pushes do so in
passing, except for packing what is sparse and forgetting values that no row has.

When a window is packed its rows get new numbers, by which states, results that are held and owed
probes know them. Where there is no memory for these to follow, they do so before anything else
happens: nothing is lost, and nobody has to give up.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.clock import START
from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.working_memory import NO_ROOM
from penstock.engine.tree.join_tree import JoinTree
from penstock.kernels.lifespan import FOREVER

if TYPE_CHECKING:
    from penstock.engine.running.running_join import RunningJoin

Int64s = NDArray[np.int64]

_SHARE_BITS = 4
"""Binary logarithm of 16: rows are dropped when a 16th of them may have passed. Dropping looks at
every window, which a push of one row must not pay for."""


class Expiry:
    """Drops what has passed from the windows and states of one running join."""

    def __init__(self, join: RunningJoin) -> None:
        self._join = join
        self._unswept = 0
        """Rows since the windows were last looked at."""
        self._patience = 0
        """Rows that may come before the next look."""
        self._look_at = START
        """The watermark at which to look in any case."""
        self._behind: list[Callable[[], None]] = []
        """What has yet to follow rows that got new numbers, each as a whole: there was no memory
        for it then."""

    def note(self, rows: int) -> None:
        """A push of ``rows`` is done."""
        self._unswept += rows

    def note_swept(self) -> None:
        """A push has dropped in passing what has passed."""
        self._unswept = 0

    @property
    def is_due(self) -> bool:
        """Whether enough rows or time have passed."""
        return (
            self._unswept > self._patience
            or self._join.clock.watermark > self._look_at
            or self.is_due_for_surpassed
        )

    @property
    def is_due_for_surpassed(self) -> bool:
        """Whether a window should be looked at for rows that others surpass."""
        surpassed = self._join.surpassed
        return surpassed is not None and surpassed.is_due

    def catch_up(self) -> None:
        """Drop what has passed, if there may be any: somebody looks."""
        if not self._join.is_broken:
            self.let_follow()
            if self._unswept:
                self._sweep()

    def catch_up_if_due(self) -> None:
        """The same where enough may have passed: the plan changes, and what is left over is
        completed with the rest."""
        if self.is_due:
            self.catch_up()
        elif not self._join.is_broken:
            self.let_follow()

    def let_follow(self) -> None:
        """Let everything follow the rows that got new numbers, if it could not before."""
        while self._behind:
            self._behind[0]()
            del self._behind[0]

    def sweep_if_it_can(self) -> None:
        """A push is done: if there is no memory to tidy up behind it, that is for the next one."""
        if self._join.is_torn:
            return
        try:
            self._sweep()
        except NO_ROOM:
            self._unswept = 1
            self._patience = 0

    def _sweep(self) -> None:
        """Drop what the watermark has passed, pack what is sparse, forget values without rows."""
        join = self._join
        self.let_follow()
        before = join.passed
        self._unswept = 0
        control = join.overload
        for tree, windows in zip(join.trees, join.windows, strict=True):
            owing = control is not None and tree is join.trees[0] and control.owes
            lull = control.lull(before) if control and owing else None
            for alias, leaf in tree.leaves.items():
                renumbered = leaf.expire(
                    control.keep_from(alias, before) if control and owing else before, lull
                )
                if renumbered is not None:
                    self._renumber(tree, leaf, renumbered)
            if self.is_due_for_surpassed:
                self._drop_surpassed(tree)
            for state in tree.kept:
                state.expire(control.keep_all_from(before) if control and owing else before, lull)
                if not state.rows.is_followed:
                    self._behind.append(state.rows.let_follow)
                    self.let_follow()
            if not owing:
                tree.hidden.note_expired(before)
            windows.sweep_values()
        leaves = [leaf for tree in join.trees for leaf in tree.leaves.values()]
        self._patience = sum(len(leaf.rows) for leaf in leaves) >> _SHARE_BITS
        spans = [leaf.span for leaf in leaves if leaf.span < FOREVER]
        self._look_at = join.clock.watermark + (max(spans, default=0) >> _SHARE_BITS)

    def _renumber(self, tree: JoinTree, leaf: LeafWindow, numbers: tuple[Int64s, int]) -> None:
        """Let everything follow the rows of ``leaf``, which have new ``numbers``."""
        alias = leaf.stream.alias
        self._behind += [
            leaf.rows.let_follow,
            *tree.renumberings(alias, *numbers),
            partial(self._join.output.renumber, alias, *numbers),
        ]
        self.let_follow()

    def drop_surpassed(self) -> None:
        """Drop all rows that others surpass, whatever that costs: between two pushes."""
        if self._join.surpassed is not None:
            self.let_follow()
            self._drop_surpassed(self._join.trees[0], at_once=True)

    def _drop_surpassed(self, tree: JoinTree, at_once: bool = False) -> None:
        """Drop the rows of the windows of ``tree`` that others surpass, and what was made of them,
        where that pays."""
        join = self._join
        if join.surpassed is None or join.overload is not None or not tree.is_whole:
            return
        settled, is_less = join.clock.settled, False
        pairs = sum([operator.made for operator in tree.operators])
        for alias, leaf in tree.leaves.items():
            kept = join.surpassed.kept(alias, settled, pairs, at_once)
            if kept is not None:
                self._renumber(tree, leaf, leaf.keep_only(kept))
                is_less = True
        for state in tree.kept if is_less else ():
            state.pack_forgotten()
            if not state.rows.is_followed:
                self._behind.append(state.rows.let_follow)
                self.let_follow()

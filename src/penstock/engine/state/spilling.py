"""State beyond memory: the oldest rows go to files when a limit on memory binds.

Payload goes first, that is what results read: most rows of a large window are in no result again,
and those that are come back one by one. Only if that is not enough, keys follow, which probes read.
Either way all windows give the same share of what they have in memory, their oldest rows: of a row
that is about to expire, least is to be expected. Answers do not change, and what a probe finds does
not: rows have the numbers and the places that they had
(:mod:`penstock.engine.state.ring_files`).

It goes down to a little below the limit, so that not every push has to move a few rows. When a
window has shrunk so much that all of it would fit into half of the limit, it comes back. If the
disk fails, all rings come back at once, and it is left alone for a while.

States of joins go last, and come back first: how large they are is for the plan to decide, and the
controller changes it before anything goes to disk, and again when a state has to. Until then, in a
burst or while another plan is prepared, the limit holds.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.ring_files import KEYS, PAYLOAD
from penstock.engine.state.rows import Rows
from penstock.engine.state.spill_files import SpillFiles
from penstock.planning.limits import Limits

AIM = 0.9
"""Share of the limit that is filled after rows have gone to disk."""
BACK = 0.5
"""Share of the limit that all windows must fit into before rows come back to memory for good."""
_ATTEMPTS = 4
"""Times that a share is moved: what a share of a window is in bytes is known only afterwards."""

Part = tuple[int, Callable[[float, SpillFiles], bool]]
"""Bytes of something in memory, and what moves a share of it to files, if there is room."""


class Spilling:
    """Keeps the windows ``leaves``, the rings of ``states`` and what else an engine holds within
    ``most`` bytes."""

    least_bytes = 1 << 16
    """Bytes of a window in memory below which moving them saves nothing: a file has whole pages."""
    pushes_after_refusal = 64
    """Pushes that pass before a disk is asked again that had no room."""

    def __init__(
        self,
        leaves: Sequence[LeafWindow],
        states: Callable[[], Sequence[Rows]],
        files: SpillFiles,
        most: int,
    ) -> None:
        self._leaves = leaves
        self._states = states
        self.files = files
        self._most = most
        self._wait = 0
        """Pushes to wait before the next attempt."""

    @classmethod
    def of(
        cls,
        leaves: Sequence[LeafWindow],
        states: Callable[[], Sequence[Rows]],
        limits: Limits | None,
        folder: str | os.PathLike[str] | None,
    ) -> Spilling | None:
        """For an engine under ``limits``, with files in ``folder``; None if it has no limit on
        memory, or may use no disk."""
        if limits is None or limits.memory is None or limits.disk == 0:
            return None
        return cls(leaves, states, SpillFiles(folder, limits.disk), limits.memory)

    def metrics(self) -> dict[str, Any]:
        """What is on disk: ``bytes`` of ``files``, where, how many rows were read from there since
        the start (each once for every column), and why there is not more, if it was ``refused``."""
        files = self.files
        return {
            "bytes": files.nbytes,
            "files": files.count,
            "folder": files.folder if files.count or files.refused else None,
            "rows_back": files.rows_back,
            "refused": files.refused or None,
        }

    @property
    def windows_away(self) -> int:
        """Bytes of windows that are in files, not in memory."""
        return sum(leaf.bytes_away for leaf in self._leaves) if self.files.count else 0

    @property
    def states_away(self) -> int:
        """Bytes of states of joins that are in files, not in memory."""
        return sum(rows.bytes_away for rows in self._states()) if self.files.count else 0

    def keep_within(self, held: Callable[[], int]) -> None:
        """A push is done, after which so many bytes are ``held``: move what is too much."""
        self._rescue()
        if self.files.count and not self.files.failed:
            for leaf in self._leaves:
                leaf.let_go()
            for rows in self._states():
                rows.let_go()
        if self._wait:
            self._wait -= 1
            return
        with contextlib.suppress(MemoryError):  # Nothing has changed then, and the next push tries.
            for parts in (self._payload, self._keys, self._rings_of_states):
                if held() > self._most and not self.files.failed:
                    self._move(parts, held)
            self._rescue()
            if self.files.refused:
                self._wait = self.pushes_after_refusal
            elif self.files.count:
                self._bring_back(held())

    def _payload(self) -> list[Part]:
        return [(leaf.bytes_of(PAYLOAD), partial(leaf.spill, PAYLOAD)) for leaf in self._leaves]

    def _keys(self) -> list[Part]:
        return [(leaf.bytes_of(KEYS), partial(leaf.spill, KEYS)) for leaf in self._leaves]

    def _rings_of_states(self) -> list[Part]:
        return [(rows.bytes_of(KEYS), partial(rows.spill_share, KEYS)) for rows in self._states()]

    def _move(self, parts: Callable[[], list[Part]], held: Callable[[], int]) -> None:
        """Move the same share of all ``parts`` that are worth it, until enough is moved."""
        for _ in range(_ATTEMPTS):
            excess = held() - int(AIM * self._most)
            able = [(size, move) for size, move in parts() if size and size >= self.least_bytes]
            if excess <= 0 or not able:
                return
            share = min(1.0, excess / sum(size for size, _ in able))
            had_room = [move(share, self.files) for _, move in able]
            if not all(had_room) or share == 1.0:
                return

    def _rescue(self) -> None:
        """Hold all rings in memory again if something did not reach the disk: it is still there."""
        if self.files.failed:
            with contextlib.suppress(MemoryError):  # The next push tries again.
                for rows in self._rings():
                    if rows.on_disk is not None:
                        rows.bring_back()
                self.files.failed = False
                self._wait = self.pushes_after_refusal

    def _rings(self) -> list[Rows]:
        return [*self._states(), *(leaf.rows for leaf in self._leaves)]

    def _bring_back(self, held: int) -> None:
        """Hold all rings in memory again, if that takes no more than half of the limit."""
        away = [rows for rows in self._rings() if rows.on_disk is not None]
        if away and held + sum(rows.bytes_away for rows in away) <= BACK * self._most:
            for rows in away:
                rows.bring_back()

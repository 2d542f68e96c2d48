"""Windows beyond memory: the oldest rows go to files when a limit on memory binds.

Payload goes first, that is what results read: most rows of a large window are in no result again,
and those that are come back one by one. Only if that is not enough, keys follow, which probes read.
Either way all windows give the same share of what they have in memory, their oldest rows: of a row
that is about to expire, least is to be expected. Answers do not change, and what a probe finds does
not: rows have the numbers and the places that they had
(:mod:`penstock.engine.state.ring_files`).

It goes down to a little below the limit, so that not every push has to move a few rows. When a
window has shrunk so much that all of it would fit into half of the limit, it comes back.

States of joins stay in memory: how large they are is for the plan to decide, and the controller
changes it before anything goes to disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.state.leaf_window import LeafWindow
from penstock.engine.state.ring_files import KEYS, PAYLOAD
from penstock.engine.state.spill_files import SpillFiles
from penstock.planning.limits import Limits

AIM = 0.9
"""Share of the limit that is filled after rows have gone to disk."""
BACK = 0.5
"""Share of the limit that all windows must fit into before rows come back to memory for good."""
_ATTEMPTS = 4
"""Times that a share is moved: what a share of a window is in bytes is known only afterwards."""


class Spilling:
    """Keeps the windows ``leaves`` and what else an engine holds within ``most`` bytes."""

    least_bytes = 1 << 16
    """Bytes of a window in memory below which moving them saves nothing: a file has whole pages."""
    pushes_after_refusal = 64
    """Pushes that pass before a disk is asked again that had no room."""

    def __init__(self, leaves: Sequence[LeafWindow], files: SpillFiles, most: int) -> None:
        self._leaves = leaves
        self.files = files
        self._most = most
        self._wait = 0
        """Pushes to wait before the next attempt."""

    @classmethod
    def of(
        cls,
        leaves: Sequence[LeafWindow],
        limits: Limits | None,
        folder: str | os.PathLike[str] | None,
    ) -> Spilling | None:
        """For an engine under ``limits``, with files in ``folder``; None if it has no limit on
        memory, or may use no disk."""
        if limits is None or limits.memory is None or limits.disk == 0:
            return None
        return cls(leaves, SpillFiles(folder, limits.disk), limits.memory)

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
    def bytes_away(self) -> int:
        """Bytes of windows that are in files, not in memory."""
        return sum(leaf.bytes_away for leaf in self._leaves) if self.files.count else 0

    def keep_within(self, held: Callable[[], int]) -> None:
        """A push is done, after which so many bytes are ``held``: move what is too much."""
        if self.files.count:
            for leaf in self._leaves:
                leaf.let_go()
        if self._wait:
            self._wait -= 1
            return
        with contextlib.suppress(MemoryError):  # Nothing has changed then, and the next push tries.
            for kind in (PAYLOAD, KEYS):
                if held() > self._most:
                    self._move(kind, held)
            if self.files.refused:
                self._wait = self.pushes_after_refusal
            elif self.files.count:
                self._bring_back(held())

    def _move(self, kind: int, held: Callable[[], int]) -> None:
        for _ in range(_ATTEMPTS):
            excess = held() - int(AIM * self._most)
            sizes = {leaf: leaf.bytes_of(kind) for leaf in self._leaves}
            able = [leaf for leaf, size in sizes.items() if size and size >= self.least_bytes]
            if excess <= 0 or not able:
                return
            share = min(1.0, excess / sum(sizes[leaf] for leaf in able))
            had_room = [leaf.spill(kind, share, self.files) for leaf in able]
            if not all(had_room) or share == 1.0:
                return

    def _bring_back(self, held: int) -> None:
        """Hold all rings in memory again, if that takes no more than half of the limit."""
        away = sum(leaf.rows.bytes_away for leaf in self._leaves)
        if away and held + away <= BACK * self._most:
            for leaf in self._leaves:
                if leaf.rows.on_disk is not None:
                    leaf.rows.bring_back()

"""Memory of states that a change of plan has dropped, for those that it has to fill.

Memory that is new to a process is given page by page, and where it comes from a hypervisor that
takes milliseconds for a megabyte: a state of a million rows that grows in the middle of a push
would make it fifty times as long. But when a plan changes, the states that only the old one had
are dropped, and are about as large as those that the new one lacks. So what these take is kept
until the new states are complete, and nobody has to ask for it again. What is not to be had here,
or was never touched, is given page by page (:mod:`penstock.engine.state.page_by_page`): states are
filled bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.page_by_page import give_page_by_page, zeros

Block = NDArray[np.uint8]

_FEWEST_BYTES = 1 << 20
"""Bytes of a block that is worth keeping, at least."""
_LARGEST_RATIO = 4
"""Times what is needed that a block may have, at most."""


class SpareMemory:
    """Blocks that are not in use."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        kept = [each for each in blocks if each.nbytes >= _FEWEST_BYTES]
        self.blocks = sorted(kept, key=lambda each: each.nbytes)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.blocks)

    def take(self, size: int) -> Block:
        """``size`` bytes, with anything in them."""
        found = self._find(size)
        if found is None:
            return zeros(size, np.uint8)
        block = self.blocks.pop(found)
        give_page_by_page(block)
        return block[:size]

    def has(self, size: int) -> bool:
        """Whether there are ``size`` bytes in one block that is not much too large."""
        return self._find(size) is not None

    def _find(self, size: int) -> int | None:
        for number, each in enumerate(self.blocks):
            if size <= each.nbytes <= _LARGEST_RATIO * size:
                return number
        return None

    def clear(self) -> None:
        """Give all back."""
        self.blocks = []

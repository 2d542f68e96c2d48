"""What a run has cost: comparisons, partial results, and the most memory that was held.

A stream tuple is counted with 8 bytes per column and its event time, a partial result with 8 bytes
per stream (references, as nothing else need be copied) and its earliest event time, whoever sleeps
with 8 bytes more for the suspension time, an MNS with 8 bytes per value and its expiry, and a Bloom
filter with its bits.
"""

from __future__ import annotations


class Ledger:
    """Counts of one run."""

    def __init__(self) -> None:
        self.comparisons = 0
        """Of one value with another, a look-up in a hash table counting as one."""
        self.made = 0
        """Partial results and results."""
        self.results = 0
        self.too_wide = 0
        """Combinations that are given and are no results: their tuples are too far apart."""
        self.tuples = 0
        """In states and blacklists."""
        self.bytes = 0
        """Of states, blacklists and MNS buffers."""
        self.peak_tuples = 0
        self.peak_bytes = 0

    @property
    def partial_results(self) -> int:
        return self.made - self.results - self.too_wide

    def hold(self, tuples: int, size: int) -> None:
        """``tuples`` more of ``size`` bytes each are held, or (negative) fewer."""
        self.tuples += tuples
        self.bytes += tuples * size
        if self.tuples > self.peak_tuples:
            self.peak_tuples = self.tuples
        self.buffer(0)

    def buffer(self, size: int) -> None:
        """``size`` more bytes are held that are not tuples."""
        self.bytes += size
        if self.bytes > self.peak_bytes:
            self.peak_bytes = self.bytes

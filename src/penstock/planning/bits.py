"""Sets of streams as the bits of an integer: what dynamic programming works on."""

from __future__ import annotations

from collections.abc import Iterator


def bits_of(mask: int) -> Iterator[int]:
    """The positions of the bits of ``mask``, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def subsets_of(mask: int) -> Iterator[int]:
    """The non-empty proper subsets of ``mask``, descending."""
    part = (mask - 1) & mask
    while part:
        yield part
        part = (part - 1) & mask

"""Memory that costs nothing until it is touched, and then page by page.

A large array of numpy's is in huge pages. They make random access cheap, but the first touch of
one gives 2 MB at once, which takes as long as half a push of a thousand rows (0.4 ms on a virtual
machine), and as ten of them where the memory has to come from a hypervisor (8 to 9 ms). Small pages
for as much took 1.5 ms, and never more. Whoever fills a large array bit by bit, beside other work
that must not wait, is better off with these.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.address import address_of

_HUGE_PAGE_BYTES = 1 << 22
"""Bytes from which on numpy asks for huge pages. Smaller arrays are better off with its memory,
which has often been used before: then there is nothing to give."""


def zeros(count: int, dtype: Any, large: int = _HUGE_PAGE_BYTES) -> NDArray[Any]:
    """``count`` zeros; page by page if they are ``large`` bytes or more."""
    size = count * np.dtype(dtype).itemsize
    if size < large or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(count, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype)


def give_page_by_page(block: NDArray[np.uint8], small: bool = True) -> None:
    """Let what has not been touched of a large ``block`` be given in ``small`` pages, or in huge
    ones, where the system can. Small ones it may put together then, in its own time."""
    advice = getattr(mmap, "MADV_NOHUGEPAGE" if small else "MADV_HUGEPAGE", None)
    advise = _advise()
    if advice is None or advise is None or block.nbytes < _HUGE_PAGE_BYTES:
        return
    address = address_of(block)
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (address + block.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    advise(start, stop - start, advice)  # Refused or not: it is about time alone.


@functools.cache
def _advise() -> Callable[[int, int, int], int] | None:
    try:
        advise = ctypes.CDLL(None).madvise
    except (AttributeError, OSError, TypeError):
        return None
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return advise

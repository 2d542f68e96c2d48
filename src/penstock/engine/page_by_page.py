"""Zeros that cost nothing until they are touched, and then page by page.

A large array of numpy's is in huge pages. They make random access cheap, but the first touch of
one gives 2 MB at once, which takes as long as a push of a thousand rows, and several times that
where the memory has to come from a hypervisor. Whoever fills a large array bit by bit, beside other
work that must not wait, is better off with small pages.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE = 1 << 22
"""Bytes from which on numpy asks for huge pages. Smaller arrays are better off with its memory,
which has often been used before: then there is nothing to give."""


def zeros(count: int, dtype: Any, large: int = _LARGE) -> NDArray[Any]:
    """``count`` zeros; page by page if they are ``large`` bytes or more."""
    size = count * np.dtype(dtype).itemsize
    if size < large or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(count, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype)

"""The decorator of kernels: compiled once, kept on disk, compiled anew when any kernel has changed.

numba keeps what it has compiled under the time and the size of the one file that the function is
in. A kernel calls others and uses their constants, and these are part of what was compiled. So a
change in one file would leave the code of others in use that has the old one inside; and a wheel
gives all its files one time, so that a change that keeps the size of a file is not noticed either.
Here everything goes by one digest over the sources of all kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit


def _digest_of(folder: Path) -> str:
    """A digest over all sources in ``folder``."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(folder.glob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


_DIGEST = _digest_of(Path(__file__).parent)


def kernel(function: Callable[..., Any]) -> Any:
    """``function``, compiled when it is first called and kept on disk."""
    return _kept(njit(cache=True)(function))


def inlined(function: Callable[..., Any]) -> Any:
    """The same, to become a part of each kernel that calls it."""
    return _kept(njit(cache=True, inline="always")(function))


def _kept(dispatcher: Any) -> Any:
    """``dispatcher`` with a cache on disk that goes by the digest and by its own file."""
    file = dispatcher._cache._cache_file  # numba has no public way to say what code depends on.
    file._source_stamp = (_DIGEST, file._source_stamp)
    return dispatcher

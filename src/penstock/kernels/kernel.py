"""The decorator of kernels: compiled once, kept on disk, compiled anew when any kernel has changed.

numba keeps what it has compiled under the time and the size of the one file that the function is
in. A kernel calls others and uses their constants, and these are part of what was compiled. So a
change in one file would leave the code of others in use that has the old one inside; and a wheel
gives all its files one time, so that a change that keeps the size of a file is not noticed either.
Here everything goes by one digest over the sources of all kernels
(:mod:`penstock.kernels.kernel_files`).

An exception in the middle of that, as the handler of Ctrl-C raises one, would leave objects of LLVM
that are released twice, and the process would end: of 75 processes whose first checkpoint was
interrupted all the time, five did. So signals wait until a kernel is there
(:mod:`penstock.kernels.held_signals`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numba
from numba import njit

from penstock.kernels.held_signals import uninterrupted
from penstock.kernels.kernel_files import KernelFiles


def _digest_of(folder: Path) -> str:
    """A digest over all sources in ``folder``."""
    digest = hashlib.blake2b(numba.__version__.encode(), digest_size=8)
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
    """``dispatcher`` with files that go by the digest, locked and undisturbed while it compiles."""
    cache = dispatcher._cache  # numba has no public way to say where code is kept.
    files = KernelFiles(cache.cache_path, cache._impl.filename_base, _DIGEST)
    cache._cache_file = files
    compile_ = dispatcher.compile

    @wraps(compile_)
    @uninterrupted
    def locked(signature: Any) -> Any:
        try:
            return compile_(signature)
        finally:
            files.unlock()

    dispatcher.compile = locked
    dispatcher.is_kept = lambda types: files.has(
        cache._index_key(types, dispatcher.targetctx.codegen())
    )
    return dispatcher

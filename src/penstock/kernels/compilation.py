"""Compiling the kernels: said aloud when it happens.

numba keeps compiled kernels on disk: beside the package, in the user's cache folder if that cannot
be written, or in ``NUMBA_CACHE_DIR``. What is there is used as long as the kernel's source, numba
and the processor are the same. Only numba knows all that, so nothing here guesses whether a kernel
will be compiled: numba raises an event when it does, and the first such event of a process prints
one line that says why the start takes up to a minute.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event

_KERNELS = "penstock.kernels."
MESSAGE = "penstock: compiling kernels for this machine, once; this takes up to a minute"


class _Compilations(event.Listener):  # type: ignore[misc]
    """Counts compilations of our kernels, and prints a line at the first."""

    def __init__(self) -> None:
        self.count = 0
        self.is_registered = False

    def on_start(self, event: Any) -> None:
        if not event.data["dispatcher"].py_func.__module__.startswith(_KERNELS):
            return
        if self.count == 0:
            print(MESSAGE, file=sys.stderr, flush=True)
        self.count += 1

    def on_end(self, event: Any) -> None:
        pass


compilations = _Compilations()


def announce_compilation() -> None:
    """From now on, say so if kernels have to be compiled."""
    if not compilations.is_registered:
        compilations.is_registered = True
        event.register("numba:compile", compilations)

"""Compiled kernels are kept on disk; the first start on a machine says that it compiles them."""

from __future__ import annotations

import sys
from pathlib import Path

import numba

from penstock.engine.kernels import probe

_announced = False


def announce_compilation() -> None:
    """Say once, on the first start, why it takes a few seconds."""
    global _announced
    if _announced:
        return
    _announced = True
    folder = Path(probe.probe._cache.cache_path)
    marker = folder / f"compiled-with-numba-{numba.__version__}"
    if marker.exists():
        return
    print(
        "penstock: compiling kernels for this machine, once (about 10 seconds)",
        file=sys.stderr,
        flush=True,
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError:
        pass  # A read-only place: numba cannot keep the kernels there either.

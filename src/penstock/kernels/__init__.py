"""Compiled kernels: plain functions on arrays.

They are kept on disk once compiled: beside the source, else in the user's cache folder. Where
neither can be written (a read-only container), numba would refuse to import them; then they go to
a private folder that lasts as long as the process.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numba


def _can_write(folder: Path) -> bool:
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _keep_somewhere() -> None:
    cache_home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    places = [Path(__file__).parent / "__pycache__", cache_home / "numba"]
    if not numba.config.CACHE_DIR and not any(_can_write(place) for place in places):
        numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="penstock-")


_keep_somewhere()

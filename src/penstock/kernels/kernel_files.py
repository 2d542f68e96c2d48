"""Compiled kernels on disk: a file for each signature, and one process that compiles it.

numba keeps an index for each function, which processes read, change and write at the same time: two
that compile a function for different types give their files the same number, and the index may then
lead from one signature to the code of the other. And numba writes the index first, so that another
process may find an entry whose file still has the code of an older version. Here the name of a file
says all that its code depends on, so there is no index: who writes it twice writes the same.

Compiling takes seconds, and processes that start together need the same kernels. The first one to
miss a file locks it; others wait for it and do not compile. Kernels call kernels, never in a
circle, and a process waits for what is further down than anything that it has locked itself, so
nobody waits for ever. If the process that has the lock gives up, the next one compiles.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
import time
from pathlib import Path
from typing import Any

from numba.core.serialize import dumps

try:
    import fcntl
except ImportError:  # On Windows every process compiles for itself.
    fcntl = None  # type: ignore[assignment]

_LONGEST_WAIT = 120.0
"""Seconds to wait for another process: the largest kernel takes 4 s, on a busy machine 20."""
_POLL = 0.02
"""Seconds between two looks at a lock."""


class KernelFiles:
    """The compiled forms of one kernel."""

    def __init__(self, folder: str, name: str, digest: str) -> None:
        """``name`` in ``folder``, of sources that have this ``digest``."""
        self._folder = Path(folder)
        self._name = name
        self._digest = digest
        self._locks: dict[Path, int] = {}

    def load(self, key: Any) -> Any:
        """What is kept under ``key``; None if it has to be compiled, here and now."""
        path = self._path(key)
        found = _read(path, key)
        if found is None:
            self._lock(path)
            found = _read(path, key)
        return found

    def has(self, key: Any) -> bool:
        """Whether something is kept under ``key``."""
        return self._path(key).exists()

    def save(self, key: Any, data: Any) -> None:
        """Keep ``data`` under ``key``; what older sources have left behind goes."""
        path = self._path(key)
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=f"{self._name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(dumps((key, data)))
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        for old in self._folder.glob(f"{self._name}.*.nb[ci]"):
            if self._digest not in old.name:
                old.unlink(missing_ok=True)

    def flush(self) -> None:
        """Forget everything."""
        for old in self._folder.glob(f"{self._name}.*.nb[ci]"):
            old.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        code = hashlib.blake2b(repr(key).encode(), digest_size=8).hexdigest()
        return self._folder / f"{self._name}.{self._digest}.{code}.nbc"

    def _lock(self, path: Path) -> None:
        if fcntl is None or path in self._locks:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return  # Nothing can be kept there, either.
        until = time.monotonic() + _LONGEST_WAIT
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(_POLL)
            else:
                break
        self._locks[path] = file

    def unlock(self) -> None:
        """Compiling is over, well or not: let others go on."""
        while self._locks:
            path, file = self._locks.popitem()
            path.with_suffix(".lock").unlink(missing_ok=True)
            os.close(file)


def _read(path: Path, key: Any) -> Any:
    """What is in the file, if there is one and it is of ``key``."""
    try:
        found, data = pickle.loads(path.read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return data if found == key else None

"""A local file that is there whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable


def replace_file(
    path: str,
    parts: Iterable[bytes | memoryview],
    durable: bool = True,
    private: bool = False,
) -> None:
    """Write ``parts`` under another name, then give the file its own.

    ``durable``: it is on the disk when this returns. ``private``: only its owner may read it.
    """
    passing = f"{path}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    mode = 0o600 if private else 0o666
    try:
        number = os.open(passing, flags, mode)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True, mode=0o700 if private else 0o777)
        number = os.open(passing, flags, mode)
    try:
        with os.fdopen(number, "wb") as file:
            for part in parts:
                file.write(part)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(passing, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(passing)
        raise

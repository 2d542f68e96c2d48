"""Files that only this user can read, in folders where others may write.

A checkpoint folder may be shared, and whoever can write in it could put a symbolic link where a run
is going to write. So nothing here follows a link in the last place of a path, and new files are for
this user alone. The mode of a file that is there already is kept: who wants others to read an event
log changes it once (``chmod 640``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
PRIVATE = 0o600


def open_private(path: Path, flags: int) -> int:
    """A descriptor of the file at ``path``; ``OSError`` that says so if it is a link."""
    try:
        file = os.open(path, flags | _NO_LINK | getattr(os, "O_NONBLOCK", 0), PRIVATE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(
                errno.ELOOP, "is a symbolic link, which is not followed", str(path)
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is not a file", str(path))
    return file


def read_private(path: Path) -> bytes:
    """What is in the file at ``path``."""
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        return file.read()


def replace_private(path: Path, content: bytes) -> None:
    """``path`` has ``content``, as a whole and on the disk, when this returns."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
    file = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            stream.flush()
            with contextlib.suppress(OSError):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode):
                    os.fchmod(file, stat.S_IMODE(found.st_mode))
            os.fsync(file)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise

"""Memory that lies in files on local disk: what windows use when a limit on memory binds.

A block is a file that is mapped into memory (``MAP_SHARED``), so that rings live in it as they do
anywhere else and kernels need not know. What of it may be out of memory is said by :func:`let_go`
(``MADV_DONTNEED``): the pages leave the process, their contents stay in the file, and whoever reads
them again gets them back, from the system's page cache or from the disk. Arrow columns are written
into a block as an Arrow file, and are read where they lie.

**Nothing is left behind.** A file has no name from the moment at which it is made: the system frees
it with the last mapping, also when the process is killed.

**A full disk costs no answer.** A write to a mapped page for which there is no room ends the
process, so all of a file is asked for when it is made (``posix_fallocate``). If it is refused, or
would leave others too little room, or is more than a limit on disk allows, there is no block; what
was to be moved stays in memory, and why is kept to be told.

**A disk that fails costs none either.** The system writes pages when it likes, and one that could
not be written counts as clean all the same: it would be dropped, and read again as it was before.
So before pages are let go for the first time they are written and waited for (``msync``,
:meth:`SpillFiles.settled`). If that fails (EIO, or ENOSPC of a file system that finds room only
when it writes) they are still in memory; they stay there, everything that lies in files comes back
to memory, and it is told. What is not covered: pages of rows that count as held in memory, in a
file nevertheless, whose write fails unnoticed and that the system drops for want of memory before
the next rows go to disk.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.engine.state.address import address_of
from penstock.errors import OptionError

Block = NDArray[np.uint8]

LEFT_FREE = 512 << 20
"""Bytes of a disk that are left to others."""
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
"""Kinds of file systems whose files are in memory."""
_LARGE_FILES = "/var/tmp"
_MOUNTS = Path("/proc/self/mounts")
_FAILED = ctypes.c_void_p(-1).value
_MS_SYNC = 4
"""Linux's number for an msync that waits."""


class SpillFiles:
    """Files in ``folder`` of at most ``most`` bytes together; None: as many as the disk has."""

    def __init__(self, folder: str | os.PathLike[str] | None = None, most: int | None = None):
        self._most = most
        self._folder = None if folder is None else _checked(folder)
        self.nbytes = 0
        """Bytes of all files."""
        self.count = 0
        """Files."""
        self.rows_back = 0
        """Rows that were read from files, once for each column."""
        self.refused = ""
        """Why the latest block was refused; empty if it was not."""
        self.failed = False
        """Whether rows in files did not reach the disk, and have to come back to memory."""

    @property
    def folder(self) -> str:
        """The folder that files are made in."""
        if self._folder is None:
            self._folder = default_folder()
        return self._folder

    def block(self, size: int) -> Block | None:
        """``size`` bytes of zeros in a new file; None if that is refused."""
        if self._most is not None and self.nbytes + size > self._most:
            self.refused = f"the limit on disk is {self._most:,} bytes"
            return None
        try:
            block = self._mapped(size)
        except OSError as problem:
            self.refused = f"{problem.strerror or problem} ({self._folder or 'temporary folder'})"
            return None
        if not self.failed:  # Else why is yet to be told.
            self.refused = ""
        self.nbytes += size
        self.count += 1
        return block

    def _mapped(self, size: int) -> Block:
        if _system() is None:
            raise OSError(None, "files cannot be mapped on this system")
        room = os.statvfs(self.folder)
        if room.f_bavail * room.f_frsize < size + LEFT_FREE:
            raise OSError(None, "the disk is nearly full")
        with tempfile.TemporaryFile(dir=self.folder, prefix="penstock-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return _map(file.fileno(), size, self._forget)

    def _forget(self, size: int) -> None:
        self.nbytes -= size
        self.count -= 1

    def settled(self, block: Block) -> bool:
        """Whether all of ``block`` is on the disk, now that it has been written and waited for."""
        system = _system()
        if system is None or system.msync(address_of(block), block.nbytes, _MS_SYNC) == 0:
            return True
        problem = os.strerror(ctypes.get_errno())
        self.refused = f"{problem} while rows were written ({self.folder}); they stay in memory"
        self.failed = True
        return False

    def array(self, values: pa.Array) -> tuple[pa.Array, Block] | None:
        """``values`` in a file, and the block they are in; None if that is refused, or no Arrow
        file can hold them."""
        batch = pa.record_batch([values], names=["values"])
        try:
            block = self.block(_written(batch, pa.MockOutputStream()))
            if block is None:
                return None
            _written(batch, pa.FixedSizeBufferWriter(pa.py_buffer(block)))
            if not self.settled(block):
                return None
            return pa.ipc.open_file(pa.py_buffer(block)).get_batch(0).column(0), block
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None  # Other columns can go, now and later.


def _written(batch: pa.RecordBatch, sink: pa.NativeFile) -> int:
    """Bytes of an Arrow file of ``batch``, which is written into ``sink``."""
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    size: int = sink.size() if isinstance(sink, pa.MockOutputStream) else 0
    sink.close()
    return size


def let_go(part: NDArray[np.generic]) -> None:
    """Let the whole pages of ``part``, which lies in a block, be in its file alone."""
    if part.nbytes < mmap.PAGESIZE:
        return
    address = address_of(part)
    start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (address + part.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    system = _system()
    if start < stop and system is not None:
        system.madvise(start, stop - start, mmap.MADV_DONTNEED)


def default_folder() -> str:
    """The folder for temporary files, or the one for large ones if that is in memory."""
    usual = tempfile.gettempdir()
    return _LARGE_FILES if is_in_memory(usual) and os.path.isdir(_LARGE_FILES) else usual


def is_in_memory(folder: str) -> bool:
    """Whether files in ``folder`` are held in memory (a tmpfs)."""
    path, found, kind = os.path.realpath(folder), "", ""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        return False
    for mount in mounts:
        place = mount[1].replace("\\040", " ")
        inside = path == place or path.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(found):
            found, kind = place, mount[2]
    return kind in _IN_MEMORY


def _checked(folder: str | os.PathLike[str]) -> str:
    """``folder``, if files can be made in it."""
    path = os.fspath(folder)
    if not isinstance(path, str) or not os.path.isdir(path):
        raise OptionError(f"spill_folder={folder!r} is no folder; give one on a local disk")
    if not os.access(path, os.W_OK | os.X_OK):
        raise OptionError(f"spill_folder={folder!r} cannot be written to")
    if is_in_memory(path):
        raise OptionError(
            f"spill_folder={folder!r} is in memory (tmpfs), of which none is to be used; "
            "give a folder on a local disk"
        )
    return path


class _System:
    """The calls of the system that Python's own ``mmap`` does not make: that keeps a file
    descriptor for each mapping, of which a process has a thousand."""

    def __init__(self, library: ctypes.CDLL) -> None:
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.mmap = library.mmap
        self.mmap.restype = pointer
        self.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_ssize_t)
        self.munmap = library.munmap
        self.munmap.argtypes = (pointer, size)
        self.msync = library.msync
        self.msync.argtypes = (pointer, size, number)
        self.madvise = library.madvise
        self.madvise.argtypes = (pointer, size, number)


@functools.cache
def _system() -> _System | None:
    if not hasattr(os, "posix_fallocate") or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    try:
        return _System(ctypes.CDLL(None, use_errno=True))
    except (AttributeError, OSError, TypeError):
        return None


def _map(descriptor: int, size: int, forget: Callable[[int], None]) -> Block:
    """The file as an array, until nobody has it any more; ``forget`` is told then."""
    system = _system()
    assert system is not None
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    address = system.mmap(None, size, protection, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    memory: Any = (ctypes.c_uint8 * size).from_address(address)
    finalizer = weakref.finalize(memory, _unmap, address, size, forget)
    finalizer.atexit = False  # Arrays may be in use until the process has ended.
    block: Block = np.frombuffer(memory, np.uint8)
    return block


def _unmap(address: int, size: int, forget: Callable[[int], None]) -> None:
    system = _system()
    assert system is not None
    system.munmap(address, size)
    forget(size)

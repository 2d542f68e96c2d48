"""One parent for all Python processes that Spark starts on this machine.

A streaming query on a data source in Python has five: one looks for data sources, one makes this
one, one plans it, one follows the stream in the driver, and one forks the workers of tasks. Each is
an interpreter that loads pyspark, Arrow, numba and Penstock for itself, which is 1.6 CPU seconds
and 100 MB, and the one that follows the stream does so again whenever a query starts.

So a session starts one process that has everything loaded
(:mod:`penstock.spark.processes.preload`) and forks whenever Spark wants a Python: the script that
Spark takes for Python (:mod:`penstock.spark.start.worker_python`) is then a small process
(:mod:`penstock.spark.start.forked_python`) that sends its arguments, folder, environment and open
files here and waits for what was forked to end. What was forked has the files of the small one, so
Spark speaks to it as ever. Where there is no parent, or it is not ready, the script goes on as
Python.

Nothing is run twice, and nothing is left out, whoever dies: a fork tells its number and begins when
this was answered. The small process that has answered waits for the fork, one that has not goes on
as Python, and a fork without an answer ends. A fork waits for the answer as long as it takes, since
it comes or the line ends: one that gave up might do so while it is answered.

The parent ends with the process that made it: it reads from a pipe that this one holds.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from penstock.spark.processes.preload import preload

_FILES = 3
"""Open files that come with a wish: standard input, output and error."""
_MOST_BYTES = 1 << 22
"""Of a wish; Linux takes no more for arguments and environment."""
_SECONDS = 2
"""Seconds for which what is to come next from the one who asks is waited for."""


def main(address: str, number: str) -> None:
    """Load everything, and fork for whoever asks at ``address``, the socket with this number."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # It is for the process that made this one.
    preload()
    gc.collect()
    gc.freeze()  # What is loaded is no garbage, and pages that nobody looks at stay shared.
    signal.signal(signal.SIGCHLD, _reap)
    late = Path(f"{address}.late")
    late.unlink(missing_ok=True)  # Those who come now need not hurry.
    with socket.socket(fileno=int(number)) as listening, selectors.DefaultSelector() as waiting:
        waiting.register(0, selectors.EVENT_READ)
        waiting.register(listening, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in waiting.select()}
            if 0 in ready:
                break
            connection, _ = listening.accept()
            files = array.array("i")
            # Whoever asked may be gone, and goes on alone if there is no fork.
            with connection, contextlib.suppress(OSError, ValueError):
                connection.settimeout(_SECONDS)
                connection.sendall(b"!")  # Who has not waited for this wishes nothing any more.
                wish = _received(connection, files)
                if os.fork() == 0:
                    waiting.close()
                    listening.close()
                    _become(wish, files, connection)
                late.unlink(missing_ok=True)  # Whoever waited in vain, it was busy for a moment.
            for file in files:
                os.close(file)
    shutil.rmtree(os.path.dirname(address), ignore_errors=True)


def _reap(*_: object) -> None:
    """Wait for what was forked and has ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _received(connection: socket.socket, files: array.array[int]) -> Mapping[str, Any]:
    """What is wanted; the files that it is to have are put into ``files``."""
    space = socket.CMSG_SPACE(_FILES * files.itemsize)
    content, aside, _, _ = connection.recvmsg(8, space)
    for level, kind, data in aside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(data)
    size = int.from_bytes(content, "little")
    if len(files) != _FILES or not 0 < size <= _MOST_BYTES:
        raise ValueError("this is not what the script sends")
    told = bytearray()
    while len(told) < size:
        more = connection.recv(size - len(told))
        if not more:
            raise ValueError("the one who asked is gone")
        told += more
    wish: Mapping[str, Any] = json.loads(told)
    return wish


def _become(wish: Mapping[str, Any], files: Sequence[int], connection: socket.socket) -> NoReturn:
    """Be what is wanted, to the end of this process, if that was answered. ``connection`` stays
    open until then, which is how the one who asked knows, and tells the exit code."""
    code = 1
    is_answered = False
    try:
        is_answered = _is_answered(wish, connection)
        if is_answered:
            os.register_at_fork(after_in_child=connection.close)  # Forks of this one may live on.
            code = _carried_out(wish, files)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if is_answered:  # To one who has not, any byte is the number of a process.
            with contextlib.suppress(Exception):
                connection.sendall(bytes([code % 256]))
        os._exit(code)


def _is_answered(wish: Mapping[str, Any], connection: socket.socket) -> bool:
    """Whether the one who asked knows that this fork is there, and leaves the wish to it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        os.chdir(wish["folder"])
        connection.settimeout(None)
        connection.sendall(os.getpid().to_bytes(8, "little"))
        return connection.recv(1) != b""
    except OSError:
        return False


def _carried_out(wish: Mapping[str, Any], files: Sequence[int]) -> int:
    """The exit code of the module that is wanted."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(wish["environment"])
    time.tzset()  # The zone of before has been read.
    _, module, *arguments = wish["arguments"]
    if not sys.flags.safe_path:
        sys.path[0] = wish["folder"]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path not in sys.path]
    sys.argv[1:] = arguments
    with contextlib.suppress(OSError):  # The name that the system shows.
        Path("/proc/self/comm").write_text(module.rpartition(".")[2])
    sys.modules.pop(module, None)  # It is run, though it may have been imported.
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])

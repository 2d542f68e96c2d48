"""``forked_python.py PYTHON ARGUMENTS…``: a Python that is forked instead of started.

It is run by its file, with as little of Python as there can be, and asks the parent that
:mod:`penstock.spark.processes.python_parent` describes for a process with these arguments. As long
as this lives, so does the small process here; it passes on the signal to end, and the exit code. If
there is no parent, or it is not ready, it becomes ``PYTHON`` itself. A process that has waited in
vain leaves a file beside the address, and while it is there others wait hardly at all: a parent
that compiles kernels, the first time on a machine, is not ready for a minute.
"""

import _socket
import contextlib
import os
import signal
import sys

_VARIABLE = "PENSTOCK_PYTHON_PARENT"
_SECONDS = 2.0
"""Seconds for which a parent that is still loading is waited for, and then for its fork: Spark
takes a process for lost that has not answered in ten, and on a busy machine Python takes most."""
_LATE = ".late"
"""Ending of the file that tells that it was waited for in vain."""
_BRIEFLY = 0.2
"""Seconds for which it is waited for then."""


def asked(arguments: list[str]) -> "tuple[int, _socket.socket] | None":
    """The process that was forked, and the line that ends with it; None if there is none."""
    address = os.environ.get(_VARIABLE)
    if address is None or len(arguments) < 2 or arguments[0] != "-m":
        return None
    import json

    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    late = address + _LATE
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    try:
        wish = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        content = json.dumps(wish).encode()
        line.settimeout(_BRIEFLY if os.path.exists(late) else _SECONDS)
        line.connect(address)
        if not line.recv(1):
            return None
        line.settimeout(_SECONDS)
        size = len(content).to_bytes(8, "little")
        line.sendmsg([size], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        line.sendall(content)
        told = line.recv(8)
        if len(told) != 8:
            return None
        line.sendall(b"!")  # Now it is the fork's, and not before.
        line.settimeout(None)
    except TimeoutError:
        with contextlib.suppress(OSError):
            open(late, "w").close()
        return None
    except OSError:
        return None
    return int.from_bytes(told, "little"), line


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # It has just ended, and has told its code.
        os.kill(pid, signal.SIGTERM)


def main(python: str, *arguments: str) -> None:
    """Have ``arguments`` carried out by a fork, else by ``python``."""
    end = {signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, end)  # It waits until there is somebody to tell.
    found = asked(list(arguments))
    if found is None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, end)
        os.execv(python, [python, *arguments])
    pid, line = found
    signal.signal(signal.SIGTERM, lambda *_: _end(pid))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, end)
    for number in (0, 1, 2):  # They are the fork's; who reads from them waits for its end alone.
        os.close(number)
    code = b""
    with contextlib.suppress(OSError):
        code = line.recv(1)
    os._exit(code[0] if code else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

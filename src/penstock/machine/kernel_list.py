"""The list of kernels and the types that they are compiled for, with what that takes.

A kernel is compiled when it is called, and then so are those that it calls: one after another, in
one process. Who knows the types beforehand can compile many at the same time. ``kernels.txt`` has
them, in an order in which callees come first: CPU seconds on the machine it was made on, a star
if a plain join needs it, the kernel, and the types of its arguments. It is made by::

    python -m penstock.machine.kernel_list

An entry that is no longer right costs nothing but time: what is missing is compiled when called.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba import types
from numba.core import event

from penstock.kernels.tables import Tables

_FILE = Path(__file__).with_name("kernels.txt")
_KERNELS = "penstock.kernels."
_ARRAY = re.compile(r"(readonly )?array\((\w+), (\d)d, ([CA])\)")
_LITERAL = re.compile(r"Literal\[(int|bool)\]\((-?\w+)\)")


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel, and types to compile it for."""

    seconds: float
    """CPU seconds that compiling takes, without the kernels that it calls."""
    is_first: bool
    """Whether a plain join cannot do without."""
    kernel: str
    """Module and function."""
    signature: str
    """Types of the arguments, as numba writes them."""

    def types(self) -> tuple[Any, ...]:
        """Types of the arguments, as numba takes them."""
        return tuple(_type(each) for each in self.signature.split("; ") if each)


def kernel_list() -> list[Entry]:
    """The entries of the file."""
    found = []
    for line in _FILE.read_text().splitlines():
        seconds, first, kernel, signature = line.split(" ", 3)
        found.append(Entry(float(seconds), first == "*", kernel, signature))
    return found


def _type(text: str) -> Any:
    """The type that numba writes as ``text``."""
    literal = _LITERAL.fullmatch(text)
    if literal:
        kind, value = literal.groups()
        return types.literal(int(value) if kind == "int" else value == "True")
    if text.startswith("Tables("):
        return types.NamedTuple([_type(each.group()) for each in _ARRAY.finditer(text)], Tables)
    array = _ARRAY.fullmatch(text)
    if array:
        readonly, item, dimensions, layout = array.groups()
        return types.Array(_type(item), int(dimensions), layout, readonly=bool(readonly))
    return types.boolean if text == "bool" else getattr(types, text)


class _Recorder(event.Listener):  # type: ignore[misc]
    """Notes what is compiled, callees before callers."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_first = True
        self._open: list[list[float]] = []

    def on_start(self, event: Any) -> None:
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        began, inner = self._open.pop()
        spent = time.process_time() - began
        if self._open:
            self._open[-1][1] += spent
        function = event.data["dispatcher"].py_func
        if not function.__module__.startswith(_KERNELS):
            return
        name = f"{function.__module__.removeprefix(_KERNELS)}.{function.__name__}"
        signature = "; ".join(map(str, event.data["args"]))
        self.entries.append(Entry(spent - inner, self.is_first, name, signature))


def _main() -> None:
    """Compile everything in an empty cache, and write the list."""
    import numba

    numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="penstock-kernels-")
    recorder = _Recorder()
    event.register("numba:compile", recorder)
    from penstock.machine.warm_up import FIRST, warm_up

    def told(done: int, total: int) -> None:
        recorder.is_first = done < FIRST
        print(f"\r{done}/{total}", end="", file=sys.stderr)

    warm_up(told)
    _FILE.write_text(
        "".join(
            f"{each.seconds:.2f} {'*' if each.is_first else '-'} {each.kernel} {each.signature}\n"
            for each in recorder.entries
        )
    )


if __name__ == "__main__":
    _main()

"""Kernels that a plain join needs are compiled beside other work, such as the start of Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from penstock.machine.compile_ahead import compile_ahead

_LOOK = 0.2
"""Seconds between two looks at how far it is."""
_SHARED = 1.4
"""Times that compiling takes longer beside the start of Spark: on two cores 48 s, where 35 s of
both of them had been enough."""

Wait = Callable[[Callable[[], bool]], None]
"""Waits for the kernels, or until a question is answered with yes."""


@contextmanager
def kernels_beside(console: Console) -> Iterator[Wait]:
    """Compile what is not on disk while something else happens inside; what is not begun with at
    the end is left.

    What goes wrong with it is no matter: then kernels are compiled when they are called.
    """
    said = [""]
    is_known = threading.Event()

    def tell(share: float, seconds: float) -> None:
        first = not is_known.is_set()
        said[0] = f"{100 * share:.0f} %, about {max(seconds, 1):.0f} s left"
        is_known.set()
        if first and not console.is_terminal:
            console.print(
                f"compiling kernels for this machine, once: about {_SHARED * seconds:.0f} s …",
                highlight=False,
            )

    is_over = threading.Event()
    worker = threading.Thread(target=compile_ahead, args=(True, tell, is_over), daemon=True)
    worker.start()

    def wait(is_enough: Callable[[], bool]) -> None:
        if not console.is_terminal:
            while worker.is_alive() and not is_enough():
                worker.join(_LOOK)
            return
        if worker.is_alive():
            with console.status("compiling kernels for this machine, once") as status:
                while worker.is_alive() and not is_enough():
                    status.update(f"compiling kernels for this machine, once: {said[0]}")
                    worker.join(_LOOK)

    try:
        yield wait
    finally:
        is_over.set()

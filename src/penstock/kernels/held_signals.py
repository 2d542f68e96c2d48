"""Signals wait while state moves: a push is done as a whole, or not at all.

Python runs handlers of signals in the main thread, between any two bytecodes, and what they raise
(KeyboardInterrupt, a timeout, the end of a service) comes out there: between linking rows into an
index and noting that they are linked, say. No order of statements is safe against that, and to undo
would have to be safe against it, too. So while an engine changes, handlers are noted and not run:

* In the main thread every handler that is a Python function is wrapped in a *gate*, once. An open
  gate runs the handler, a shut one notes the signal. Other threads never run handlers.
* As long as a push is :attr:`~HeldSignals.undoable`, :meth:`HeldSignals.give` is called after each
  portion of work (of some ten milliseconds, so that Ctrl-C is answered soon), and last before the
  push becomes visible. There the handlers of noted signals run, and what they raise undoes the
  push, with gates still shut.
* A signal that comes later finds the push done. Its answer must not be lost, so the signal is sent
  again a moment after the return: that is what would have happened, had it come a moment later.

Opening the gates is a single store, and CPython looks for signals at calls and at jumps backwards,
not at stores or returns: between the opening and the caller's next call no handler can run.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from _signal import getsignal  # type: ignore[import-not-found]  # 40 ns; signal's own takes 1 µs.
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import FrameType
from typing import Any, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Handler = Callable[[int, FrameType | None], Any]

_LATER = 0.001
"""Seconds after which a signal that came too late to undo a push is sent again."""
_NAMES = ("INT", "TERM", "HUP", "ALRM", "USR1")
_SIGNALS = tuple(
    int(getattr(signal, f"SIG{name}")) for name in _NAMES if hasattr(signal, f"SIG{name}")
)
"""Signals by which programs are interrupted: to look at each takes 0.06 µs of every push."""


_main = [threading.main_thread().ident]
"""The thread that runs handlers."""
if hasattr(os, "register_at_fork"):  # In a child it is the one that has forked.
    os.register_at_fork(after_in_child=lambda: _main.__setitem__(0, get_ident()))


class _Gate:
    """The handler of a signal, while it is open."""

    def __init__(self, held: HeldSignals, handler: Handler) -> None:
        self._held = held
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        if self._held.shut:
            self._held.noted.append(number)
            return None
        return self.handler(number, frame)


class HeldSignals:
    """The gates of this process."""

    def __init__(self) -> None:
        self.shut = False
        self.noted: list[int] = []
        self.undoable = False
        """Whether what is raised now leaves the engine as it was before the push at hand."""
        self.opening = False
        """Whether what was noted is to be sent as soon as the gates are open."""
        self.watch: Callable[[], None] | None = None
        """What else is called between portions of the work of the push at hand; it may raise."""
        self._seen: tuple[Any, ...] = ()
        """The handlers of all signals, when they were last looked at."""

    def hold(self) -> bool:
        """Shut the gates; whether they have to be opened again by the caller."""
        if self.shut or get_ident() != _main[0]:
            return False
        if tuple(map(getsignal, _SIGNALS)) != self._seen:
            self._put_gates()
        self.shut = True
        return True

    def _put_gates(self) -> None:
        for number in _SIGNALS:
            handler = getsignal(number)
            if handler.__class__ is not _Gate and callable(handler):
                signal.signal(number, _Gate(self, handler))
        self._seen = tuple(map(getsignal, _SIGNALS))

    def may_undo(self) -> None:
        """Until it is told otherwise, what is raised in this thread undoes the push at hand."""
        if get_ident() == _main[0]:
            self.undoable = True

    def give(self) -> None:
        """Run the handlers of what was noted, if everything can still be undone."""
        if self.noted and self.undoable and get_ident() == _main[0]:
            while self.noted:
                number = self.noted.pop(0)
                gate = getsignal(number)
                if gate.__class__ is _Gate:
                    gate.handler(number, None)

    def go_on(self) -> None:
        """:meth:`give` in the middle of the joins of a push, which may be stopped by a watch."""
        self.give()
        if self.watch is not None:
            self.watch()

    def open(self) -> None:
        """Open the gates; what was noted and not given comes a moment later."""
        if self.noted:
            self._send_later()
        self.undoable = self.shut = self.opening = False

    def _send_later(self) -> None:
        numbers, self.noted = self.noted, []
        self.opening = True
        timer = threading.Timer(_LATER, _send, (numbers,))
        timer.daemon = True
        timer.start()


def _send(numbers: list[int]) -> None:
    while HELD.opening:  # A gate that is still shut would note them, and nobody look again.
        time.sleep(_LATER)
    for number in numbers:
        signal.raise_signal(number)


HELD = HeldSignals()


def uninterrupted(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """``method`` with signals held back until it has returned."""

    @wraps(method)
    def held(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        mine = HELD.hold()
        try:
            return method(*args, **kwargs)
        finally:
            if mine:
                HELD.open()

    return held

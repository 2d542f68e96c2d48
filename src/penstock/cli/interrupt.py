"""An interrupt is not lost.

Python raises KeyboardInterrupt wherever the program happens to be. Inside a finaliser, a weak
reference's callback or a C callback nobody can catch it: Python reports it as "ignored" and goes
on, and the person at the keyboard waits. The hook for such exceptions sends the interrupt again, a
moment later and from another thread, so that it arrives outside. On a busy machine the main thread
may still be in the hook by then, where an interrupt would be lost as well: so the other thread
waits until it has left.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import CodeType

_LATER_SECONDS = 0.02
"""Long enough for a finaliser to end, too short for a person to notice."""


def send_lost_interrupts_again() -> None:
    """From now on, an interrupt that Python would ignore is sent again."""
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if ignored.exc_type is not KeyboardInterrupt:
            before(ignored)
            return
        threading.Thread(target=again, daemon=True).start()

    def again() -> None:
        time.sleep(_LATER_SECONDS)
        while _is_inside(hook.__code__):
            time.sleep(_LATER_SECONDS)
        _interrupt_main()

    sys.unraisablehook = hook


def _interrupt_main() -> None:
    """Interrupt the main thread, also out of a call that waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _is_inside(code: CodeType) -> bool:
    """Whether the main thread is running ``code``."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False

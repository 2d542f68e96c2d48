"""An interrupt is not lost.

Python raises KeyboardInterrupt wherever the program happens to be. Inside a finaliser, a weak
reference's callback or a C callback nobody can catch it: Python reports it as "ignored" and goes
on, and the person at the keyboard waits. The hook for such exceptions sends the interrupt again, a
moment later and from another thread, so that it arrives outside.
"""

from __future__ import annotations

import _thread
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_LATER = 0.02


def send_lost_interrupts_again() -> None:
    """From now on, an interrupt that Python would ignore is sent again."""
    before = sys.unraisablehook

    def hook(ignored: UnraisableHookArgs) -> None:
        if ignored.exc_type is not KeyboardInterrupt:
            before(ignored)
            return
        again = threading.Timer(_LATER, _thread.interrupt_main)
        again.daemon = True
        again.start()

    sys.unraisablehook = hook

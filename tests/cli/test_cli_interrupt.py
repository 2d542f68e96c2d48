"""An interrupt inside a finaliser still ends the program."""

import subprocess
import sys

PROGRAM = """
import signal, time
from penstock.cli.interrupt import send_lost_interrupts_again

send_lost_interrupts_again()

class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)

try:
    held = Held()
    del held
    time.sleep(1_000)
    print("the interrupt is lost")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_inside_a_finaliser_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=1_800
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_other_ignored_exceptions_are_shown() -> None:
    program = PROGRAM.replace("signal.raise_signal(signal.SIGINT)", "1 / 0").replace(
        "time.sleep(1_000)", "pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1_800
    )
    assert "ZeroDivisionError" in done.stderr


def test_the_interrupt_waits_until_the_hook_is_left() -> None:
    """As on a busy machine, where the main thread is still there when the other one wakes up."""
    slow = """
import threading, penstock.cli.interrupt as interrupt
interrupt._LATER_SECONDS = 0.001
class SlowToStart(threading.Thread):
    def start(self):
        super().start()
        for _ in range(20):
            time.sleep(0.01)
interrupt.threading.Thread = SlowToStart
send_lost_interrupts_again()
"""
    program = PROGRAM.replace("send_lost_interrupts_again()\n", slow, 1)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=1_800
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")

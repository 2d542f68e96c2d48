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
    time.sleep(50)
    print("the interrupt is lost")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_inside_a_finaliser_is_not_lost() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_other_ignored_exceptions_are_shown() -> None:
    program = PROGRAM.replace("signal.raise_signal(signal.SIGINT)", "1 / 0").replace(
        "time.sleep(50)", "pass"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert "ZeroDivisionError" in done.stderr

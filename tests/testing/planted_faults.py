"""Faults planted into compiled feedback, one at a time: does the fuzzer find them?

::

    python tests/testing/planted_faults.py             # all; some minutes each, to compile
    python tests/testing/planted_faults.py filter wake # those whose names have such a word

What Python calls can be replaced in a test (``test_fuzz.py`` does). What kernels call is compiled
into them, so a fault is a change of their text, in a copy of the package with kernels of its own,
in a process of its own. A fault that is not found within its cases is a hole in the fuzzer: the
exit code is then 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src"
GUARDS = "penstock/kernels/guards.py"


class Fault(NamedTuple):
    """A change of a text, and how many cases of what size have to show it."""

    name: str
    file: str
    before: str
    after: str
    cases: int = 100
    large_every: int = 0


FAULTS = (
    Fault(
        "256 rows wake at most for a piece of news",
        GUARDS,
        """                found[0, :most],
            )
            if woken < most:  # Else more rows may wait for the same keys.
                progress[ROW] += count
""",
        """                found[0, : min(most, 256)],
            )
            progress[ROW] += count
""",
        cases=12,
        large_every=1,
    ),
    Fault(
        "a filter loses the first key of what comes",
        GUARDS,
        "                for i in range(count):\n                    add_key(",
        "                for i in range(1, count):\n                    add_key(",
    ),
    Fault(
        "rows that wake pass the other guards unasked",
        GUARDS,
        "count = _pass(tables, at, each, woken)",
        "count = woken",
        cases=150,
    ),
    Fault(
        "composites that wait are not woken",
        GUARDS,
        "    rests = code[guard + RESTS] != 0\n",
        "    if code[at + WINDOW] < 0:\n        return DONE\n    rests = False\n",
    ),
)


def plant(fault: Fault, folder: Path) -> None:
    """A copy of the package with the fault, and without compiled kernels."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / fault.file
    text = file.read_text()
    assert text.count(fault.before) == 1, f"{fault.name}: {fault.file} has changed"
    file.write_text(text.replace(fault.before, fault.after))


def is_found(fault: Fault) -> tuple[bool, str]:
    """Whether the fuzzer finds the fault, and what it says last."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        plant(fault, source)
        command = [sys.executable, "-W", "ignore", "-m", "penstock", "fuzz"]
        command += ["--cases", str(fault.cases), "--large-every", str(fault.large_every)]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or ["nothing said"]
    return done.returncode == 1 and lines[-1].endswith("differs."), lines[-1]


def main(words: list[str]) -> int:
    missed = 0
    for fault in FAULTS:
        if words and not any(word in fault.name for word in words):
            continue
        began = time.monotonic()
        found, said = is_found(fault)
        missed += not found
        taken = time.monotonic() - began
        print(
            f"{'found' if found else 'MISSED':7} {fault.name}: {said} ({taken:.0f} s)", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

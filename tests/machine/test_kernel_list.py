"""The list of kernels: it can be read, nothing in it is stale, and processes share the work."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.machine.compile_ahead import compile_ahead
from penstock.machine.kernel_list import Entry, kernel_list

_FEW = """
import json
from penstock.machine import compile_ahead

def main():
    few = compile_ahead.kernel_list()[:3]  # Processes know them by their places in the list.
    compile_ahead.kernel_list = lambda: few
    told = []
    counts = [compile_ahead.compile_ahead(progress=lambda *each: told.append(each)) for _ in "ab"]
    print(json.dumps([counts, told]))

if __name__ == "__main__":
    main()
"""


def _kernel(entry: Entry) -> Any:
    module, function = entry.kernel.split(".")
    return getattr(importlib.import_module(f"penstock.kernels.{module}"), function)


def test_the_list_says_what_numba_says() -> None:
    entries = kernel_list()
    for entry in entries:
        assert "; ".join(map(str, entry.types())) == entry.signature
    first = [entry for entry in entries if entry.is_first]
    assert 0 < len(first) < len(entries)


def test_nothing_in_the_list_is_stale() -> None:
    """If this fails: ``python -m penstock.machine.kernel_list``."""
    compile_ahead()
    stale = [each.kernel for each in kernel_list() if not _kernel(each).is_kept(each.types())]
    assert stale == []


def test_processes_compile_what_is_missing_and_tell_how_far_they_are(tmp_path: Path) -> None:
    program = tmp_path / "few.py"
    program.write_text(_FEW)
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
        timeout=1_800,
    )
    counts, told = json.loads(done.stdout)
    assert counts == [3, 0]
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], round(shares[-1], 6)) == (0, 1)
    assert all(left >= -1e-9 for _, left in told)

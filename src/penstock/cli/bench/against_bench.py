"""``penstock bench paths --against FOLDER``: a plain push, against the code of another checkout.

Two processes make the same pushes of W1, one with this code and one with that of FOLDER, and take
turns, a block of pushes each; who begins changes from round to round. A figure is the median over
the rounds of the CPU time of this code against that of the other in the same round, so that
whatever else the machine does is done to both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock
from penstock.cli.bench import push_child
from penstock.cli.bench.engine_run import FILLING, filled
from penstock.cli.bench.paths_bench import PLAN, PUSHES
from penstock.cli.bench.workloads import WORKLOADS, Workload
from penstock.errors import OptionError


class _Child:
    """A process that pushes with the penstock in the folder ``source``."""

    def __init__(self, source: Path, folder: Path, feedback: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", push_child.__file__, str(folder), feedback],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(source)},
        )
        if self._answer() != str(source / "penstock"):
            self.close()
            raise OptionError(f"another penstock than that in {source} is first on the path")

    def block(self, batch: int, count: int) -> float:
        """CPU seconds of ``count`` pushes of ``batch`` rows."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{batch} {count}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise penstock.PenstockError("a process that pushes has failed; see above")
        return json.loads(line)


def against_bench(
    folder: Path,
    batches: tuple[int, ...],
    rounds: int,
    feedbacks: tuple[str, ...],
    workload: Workload = WORKLOADS["W1"],
    pushes: Mapping[int, int] = PUSHES,
) -> dict[str, Any]:
    """By feedback and rows of a push: the ratio, and CPU seconds of a push with either code.

    ``pushes`` are those of a block, by their rows.
    """
    other = folder.resolve() / "src"
    if not (other / "penstock" / "__init__.py").exists():
        raise OptionError(f"{folder} is no checkout of Penstock: it has no src/penstock")
    sources = Path(penstock.__file__).resolve().parent.parent, other
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as given:
        _write(workload, Path(given))
        for feedback in feedbacks:
            children = [_Child(source, Path(given), feedback) for source in sources]
            try:
                found[feedback] = {
                    batch: _compared(children, batch, pushes[batch], rounds) for batch in batches
                }
            finally:
                for child in children:
                    child.close()
    return found


def _write(workload: Workload, folder: Path) -> None:
    """Put what the processes need into ``folder``."""
    tables = workload.tables()
    setup = {
        "query": workload.query,
        "streams": list(tables),
        "plan": PLAN,
        "filled": filled(workload),
        "batch": FILLING,
    }
    (folder / "setup.json").write_text(json.dumps(setup))
    for name, table in tables.items():
        with pa.ipc.new_file(folder / f"{name}.arrow", table.schema) as file:
            file.write_batch(table)


def _compared(children: list[_Child], batch: int, count: int, rounds: int) -> dict[str, float]:
    for child in children:  # What is written down or loaded at the first push of a size.
        child.block(batch, count)
    taken: tuple[list[float], list[float]] = [], []
    for number in range(rounds):
        for turn in (0, 1) if number % 2 else (1, 0):
            taken[turn].append(children[turn].block(batch, count) / count)
    mine, theirs = taken
    ratios = [one / other for one, other in zip(mine, theirs, strict=True)]
    return {
        "ratio": statistics.median(ratios),
        "seconds": statistics.median(mine),
        "against": statistics.median(theirs),
    }


def show_against(folder: Path, found: Mapping[str, Any]) -> None:
    """Print the figures as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title_justify="left")
    table.title = f"CPU of a plain push (W1), against the code in {folder}"
    for heading in ("feedback", "rows", "this", "against", "ratio"):
        table.add_column(heading, justify="left" if heading == "feedback" else "right")
    for feedback, figures in found.items():
        for batch, each in figures.items():
            seconds = [f"{1e6 * each[name]:.0f} µs" for name in ("seconds", "against")]
            table.add_row(feedback, f"{batch:,}", *seconds, f"{each['ratio']:.2f}")
    Console(highlight=False).print(table)

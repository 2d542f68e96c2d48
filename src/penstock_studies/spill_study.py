"""Windows that are larger than memory: the same answer under a limit as without, and its price.

Three streams with a text and some doubles in each row, chained by keys such that some rows of any
age are in results. The windows fill, and then roll on for half a window. Each run has a process of
its own, so that the memory it takes can be told: what is private to it (the interpreter, kernels,
windows, the batch at hand), and pages of files that happen to be mapped, which the system takes
back when it is short. Answers are compared by their number and by a sum over all bytes of all rows
that does not depend on their order inside a push.

At the end a checkpoint is written to a file, and another process goes on from it: what each holds
meanwhile is looked at every few milliseconds.

The memory that the process is limited to besides is optional (``--process``): ``RLIMIT_DATA``,
which mapped files do not count for. With it, a run that held its windows in memory would fail.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import penstock
from penstock.planning.limits import Limits, size_text
from penstock_studies.process_status import process_status
from penstock_studies.text_table import heading, text_table

ABOUT = "windows larger than memory: answer, speed and memory with and without a limit"

_TEXT = 400
"""Bytes of the text of a row."""
_DOUBLES = 6
"""Other columns of a row."""
_ROW = _TEXT + 8 * _DOUBLES
"""Bytes of payload of a row."""
_PUSHES = 40
"""Pushes that fill the windows."""
_MORE = 20
"""Pushes that follow, in which as much expires as comes."""
_PARTNERS = 0.3
"""Rows of each other window that a row meets, on average."""
_LOOKS = 0.005
"""Seconds between looks at what a process holds while it saves or loads."""
_POOL = 96 << 20
"""Random bytes that texts are cut from."""
_STREAMS = ("A", "B", "C")
_SCHEMA = pa.schema(
    [("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())]
    + [(f"v{number}", pa.float64()) for number in range(_DOUBLES)]
)


@dataclass(frozen=True)
class Run:
    """What is run."""

    nbytes: int
    """Bytes of payload in full windows."""
    memory: int | None
    """The limit, in bytes."""
    process: int | None
    """Bytes that the process may have in all, mapped files aside."""
    folder: str | None
    seed: int
    checkpoint: str | None = None
    """Where a checkpoint is written to at the end, and read from by who goes on from it."""

    @property
    def query(self) -> penstock.JoinGraph:
        """The query."""
        windows = ", ".join(
            f"{name} [RANGE {self.rows * _PUSHES} MILLISECONDS]" for name in _STREAMS
        )
        doubles = ", ".join(f"{s}.v{n} AS {s}{n}" for s in _STREAMS for n in range(_DOUBLES))
        return penstock.parse(
            f"SELECT A.s AS a, B.s AS b, C.s AS c, {doubles} FROM {windows} "
            "WHERE A.k = B.k AND B.k = C.k",
            dict.fromkeys(_STREAMS, _SCHEMA),
        )

    def pushed(self, number: int, pool: NDArray[np.uint8]) -> dict[str, pa.Table]:
        """Push ``number``."""
        return batches(number, self.rows, int(self.rows * _PUSHES / _PARTNERS), pool, self.seed)

    @property
    def rows(self) -> int:
        """Rows of each stream in a push."""
        return max(1, self.nbytes // (_ROW * len(_STREAMS) * _PUSHES))


@dataclass
class Found:
    """What came out of it."""

    pushes: int = 0
    rows: int = 0
    results: int = 0
    checksum: int = 0
    cpu: float = 0.0
    wall: float = 0.0
    slowest: float = 0.0
    """CPU seconds of the slowest push."""
    state: int = 0
    """Bytes that the engine held in memory after a push, at most."""
    disk: int = 0
    """Bytes of files, at most."""
    rows_back: int = 0
    private: int = 0
    """Bytes of memory of the process that is no mapped file, after a push, at most."""
    before: int = 0
    """The same before the first push."""
    resident: int = 0
    """Bytes of all its memory, after a push, at most."""
    over: int = 0
    """Pushes after which the limit was exceeded."""
    plan: str = ""
    saving: float = 0.0
    """Seconds in which the checkpoint was written."""
    saved: int = 0
    """Bytes of it."""
    saving_private: int = 0
    """Bytes of memory that the process took meanwhile, beyond what it had before."""
    after: tuple[int, int] = (0, 0)
    """Results of one more push, and their checksum."""
    loading: float = 0.0
    """Seconds in which another process has read it."""
    loading_private: int = 0
    """Bytes of memory of that process, meanwhile and in one more push, at most."""
    went_on: tuple[int, int] = (0, 0)
    """Results of that push, and their checksum."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--windows", default="4GB", help="payload in full windows (default: 4GB)")
    parser.add_argument("--memory", default="1GB", help="the limit (default: 1GB)")
    parser.add_argument("--process", help="bound what the limited process may have in all, too")
    parser.add_argument("--folder", type=Path, help="where rows go (default: temporary files)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")


def run(options: argparse.Namespace) -> bool:
    """Run without a limit and with it, and compare; whether the answers are the same and the limit
    held."""
    nbytes, memory, process = (
        None if text is None else Limits(memory=text).memory
        for text in (options.windows, options.memory, options.process)
    )
    assert nbytes is not None
    folder = None if options.folder is None else str(options.folder)
    with tempfile.TemporaryDirectory(dir=folder) as where:
        given = Run(nbytes, None, None, folder, options.seed, f"{where}/checkpoint")
        found = {}
        for name, run in (
            ("no limit", given),
            (f"memory {options.memory}", replace(given, memory=memory, process=process)),
        ):
            found[name] = in_a_process(measure, run)
            gone_on = in_a_process(go_on, run)
            each = found[name]
            each.loading, each.loading_private = gone_on.loading, gone_on.loading_private
            each.went_on = gone_on.went_on
    print(heading("spill", options.seed))
    print(table(found))
    limited = found[f"memory {options.memory}"]
    answers = {(each.results, each.checksum) for each in found.values()}
    last = {each for one in found.values() for each in (one.after, one.went_on)}
    same = len(answers) == len(last) == 1
    print(f"\nanswers: {'the same' if same else 'DIFFERENT'}, {limited.results:,} results")
    print(f"pushes after which the limit was exceeded: {limited.over} of {limited.pushes}")
    return same and limited.over == 0


def in_a_process(work: Callable[[Run], Found], given: Run) -> Found:
    """What ``work`` finds in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, given).result()


def table(found: dict[str, Found]) -> str:
    """What was found, a column for each run."""
    lines = {
        "rows pushed": lambda f: f"{f.rows:,}",
        "results": lambda f: f"{f.results:,}",
        "rows per CPU second": lambda f: f"{f.rows / f.cpu:,.0f}",
        "CPU seconds of pushes": lambda f: f"{f.cpu:.1f}",
        "slowest push, CPU s": lambda f: f"{f.slowest:.2f}",
        "seconds by the clock": lambda f: f"{f.wall:.1f}",
        "state in memory, most": lambda f: size_text(f.state),
        "files, most": lambda f: size_text(f.disk),
        "values read from files": lambda f: f"{f.rows_back:,}",
        "process, private, most": lambda f: size_text(f.private),
        "of that, before the first push": lambda f: size_text(f.before),
        "process, with mapped files": lambda f: size_text(f.resident),
        "checkpoint written, s": lambda f: f"{f.saving:.1f}",
        "its size": lambda f: size_text(f.saved),
        "private memory for that": lambda f: size_text(f.saving_private),
        "read in another process, s": lambda f: f"{f.loading:.1f}",
        "its private memory, most": lambda f: size_text(f.loading_private),
        "plan": lambda f: f.plan,
    }
    rows = [[name, *map(tell, found.values())] for name, tell in lines.items()]
    return text_table(["", *found], rows)


def measure(given: Run) -> Found:
    """Push everything through one engine."""
    engine = penstock.Engine(given.query, limits=_limits(given), spill_folder=given.folder)
    _warm_up(given)
    pool = _pool(given)
    found = Found(before=process_status()["RssAnon"])
    if given.process is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (given.process, given.process))
    for number in range(_PUSHES + _MORE):
        pushed = given.pushed(number, pool)
        cpu, wall = time.process_time(), time.monotonic()
        answer = engine.push(pushed)
        took = time.process_time() - cpu
        found.cpu += took
        found.slowest = max(found.slowest, took)
        found.wall += time.monotonic() - wall
        found.results += len(answer)
        found.checksum = (found.checksum + checksum(answer)) % (1 << 64)
        del pushed, answer
        _note(found, engine)
    _save(found, engine, given)
    answer = engine.push(given.pushed(_PUSHES + _MORE, pool))
    found.after = len(answer), checksum(answer)
    return found


def _save(found: Found, engine: penstock.Engine, given: Run) -> None:
    """Write the checkpoint of ``engine``."""
    assert given.checkpoint is not None
    before, wall = process_status()["RssAnon"], time.monotonic()
    with _Watch() as watch, open(given.checkpoint, "wb") as file:
        file.writelines(engine.checkpoint_parts())
    found.saving = time.monotonic() - wall
    found.saving_private = watch.most - before
    found.saved = Path(given.checkpoint).stat().st_size


def go_on(given: Run) -> Found:
    """Go on from the checkpoint of a run, and push once more."""
    assert given.checkpoint is not None
    _warm_up(given)
    pool = _pool(given)
    found = Found()
    if given.process is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (given.process, given.process))
    with _Watch() as watch:
        wall = time.monotonic()
        engine = penstock.Engine.restore(
            given.query, Path(given.checkpoint), spill_folder=given.folder
        )
        found.loading = time.monotonic() - wall
        answer = engine.push(given.pushed(_PUSHES + _MORE, pool))
    found.loading_private = watch.most
    found.went_on = len(answer), checksum(answer)
    return found


class _Watch:
    """The private memory of the process meanwhile, at most."""

    def __enter__(self) -> _Watch:
        self.most = process_status()["RssAnon"]
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def _look(self) -> None:
        while not self._is_over.wait(_LOOKS):
            self.most = max(self.most, process_status()["RssAnon"])

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def _limits(given: Run) -> Limits | None:
    return None if given.memory is None else Limits(memory=given.memory)


def _pool(given: Run) -> NDArray[np.uint8]:
    return np.random.default_rng(given.seed).integers(97, 123, _POOL, np.uint8)


def _warm_up(given: Run) -> None:
    """Load kernels."""
    warm = penstock.Engine(given.query)
    for number in range(3):
        warm.push(batches(number, 2_000, 1_000, np.zeros(_POOL, np.uint8), given.seed))


def batches(
    number: int, rows: int, keys: int, pool: NDArray[np.uint8], seed: int
) -> dict[str, pa.Table]:
    """Push ``number``: a row of each stream in a millisecond."""
    chance = np.random.default_rng([seed, number])
    times = np.arange(number * rows, (number + 1) * rows)
    made = {}
    for name in _STREAMS:
        first = int(chance.integers(_POOL // 2))
        # A copy, as a view would keep the whole pool alive.
        texts = np.resize(pool[first : first + rows * _TEXT], rows * _TEXT).copy()
        texts.reshape(rows, _TEXT)[:, :8] = 97 + (times[:, None] >> (4 * np.arange(8))) % 16
        offsets = np.arange(0, (rows + 1) * _TEXT, _TEXT, dtype=np.int32)
        made[name] = pa.table(
            [
                times,
                chance.integers(0, keys, rows),
                pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(texts)),
                *(chance.random(rows) for _ in range(_DOUBLES)),
            ],
            schema=_SCHEMA,
        )
    return made


def checksum(answer: pa.Table) -> int:
    """A sum over all bytes of all rows, whatever their order."""
    count = len(answer)
    if count == 0:
        return 0
    factors = np.random.default_rng(7).integers(1, 1 << 62, (answer.num_columns, _TEXT // 8))
    rows = np.zeros(count, np.uint64)
    for column, factor in zip(answer.combine_chunks().itercolumns(), factors, strict=True):
        values = column.chunk(0)
        data = values.buffers()[-1]
        first = values.offset
        if pa.types.is_string(values.type):
            words = np.frombuffer(data, np.uint64)[first * (_TEXT // 8) :]
            words = words[: count * (_TEXT // 8)].reshape(count, -1)
            rows += (words * factor.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
        else:
            numbers = np.frombuffer(data, np.uint64)[first : first + count]
            rows += numbers * np.uint64(factor[0])
        rows ^= rows >> np.uint64(29)
        rows *= np.uint64(0x9E3779B97F4A7C15)
    return int(rows.sum(dtype=np.uint64))


def _note(found: Found, engine: penstock.Engine) -> None:
    metrics, memory = engine.metrics(), process_status()
    disk = metrics["state"].get("disk", {"bytes": 0, "rows_back": 0})
    found.pushes, found.rows, found.plan = metrics["pushes"], metrics["rows"], str(engine.plan)
    found.state = max(found.state, metrics["state"]["bytes"])
    found.disk = max(found.disk, disk["bytes"])
    found.rows_back = disk["rows_back"]
    found.private = max(found.private, memory["RssAnon"])
    found.resident = max(found.resident, memory["VmRSS"])
    found.over += bool(metrics["control"]["exceeded"])

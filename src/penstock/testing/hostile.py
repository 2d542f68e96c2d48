"""Hostile input: mutated checkpoints and Arrow batches against engines that must not care.

A mutation may be refused, with an error of Penstock's own, or go unnoticed: then the engine has to
go on with it, to whatever answer. It must not end the process, raise an error that is not ours, or
take more memory than there is (the caller bounds it). Each attack is a function of its number, so
that one that hits can be done again.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from penstock import Engine, Limits
from penstock.errors import PenstockError
from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse
from penstock.testing.interrupted import attack_by_signals
from penstock.testing.mutation import mutated, signed
from penstock.testing.no_memory import attack_by_no_memory

SCHEMA = pa.schema(
    [
        ("ts", pa.int64()),
        ("id", pa.int64()),
        ("x", pa.int64()),
        ("name", pa.string()),
        ("tag", pa.large_binary()),
        ("flag", pa.bool_()),
        ("price", pa.decimal128(12, 2)),
        ("part", pa.list_(pa.int32())),
    ]
)
_THREE = "FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS], C [RANGE 3 SECONDS] "
_ON = "WHERE A.x = B.x AND B.name = C.name"
_ALL = "A.id AS a, B.name AS n, C.tag AS t, A.flag AS f, B.price AS p, C.part AS l"
_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    (f"SELECT {_ALL} {_THREE}{_ON}", {"plan": "((A B) C)"}),
    (f"SELECT A.id AS a, B.id AS b, C.id AS c {_THREE}WHERE A.x = B.x AND B.x = C.x", {}),
    (f"SELECT {_ALL} {_THREE}{_ON} AND A.id < C.id", {"lateness": 300, "feedback": "off"}),
    (f"SELECT RSTREAM A.id AS a, C.tag AS t {_THREE}{_ON}", {}),
    (
        f"SELECT A.name AS x, COUNT(*) AS n, SUM(B.price) AS s, MAX(C.tag) AS m {_THREE}{_ON} "
        "GROUP BY A.name",
        {},
    ),
    (
        "SELECT A.id AS a, B.tag AS b FROM A [ROWS 30], B [PARTITION BY name ROWS 4] "
        "WHERE A.tag = B.tag",
        {},
    ),
    (
        "SELECT A.name AS x FROM A [RANGE 2 SECONDS], B [RANGE 2 SECONDS] WHERE A.tag = B.tag "
        "EXCEPT SELECT C.name AS x FROM C [RANGE 2 SECONDS]",
        {"lateness": 200},
    ),
    (f"SELECT A.id AS a, C.tag AS c {_THREE}{_ON}", {"overload": "defer", "limits": 40.0}),
)
_PUSHES = 6
_LONGEST = 120
"""CPU seconds after which an attack counts as endless: most take milliseconds, but the first ones
compile kernels."""


@cache
def batch(push: int, stream: str, count: int = 12) -> pa.RecordBatch:
    """Rows of ``stream`` in push number ``push``."""
    random = np.random.RandomState(1_000 * push + ord(stream))
    names = pa.array([f"name {n}" for n in random.randint(0, 4, count)], pa.string())
    columns = [
        pa.array(np.sort(push * 300 + random.randint(0, 300, count)), pa.int64()),
        pa.array(push * 100 + np.arange(count), pa.int64()),
        pa.array(random.randint(0, 4, count), pa.int64(), mask=random.rand(count) < 0.1),
        names,
        pa.array([bytes(n) for n in random.randint(0, 3, count)], pa.large_binary()),
        pa.array(random.rand(count) < 0.5),
        pa.array(random.randint(0, 999, count), pa.int32()).cast(pa.decimal128(12, 2)),
        pa.array([list(range(n)) for n in random.randint(0, 3, count)], pa.list_(pa.int32())),
    ]
    if random.rand() < 0.3:
        columns[3] = names.dictionary_encode()
    fields = [pa.field(f.name, c.type) for f, c in zip(SCHEMA, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@cache
def _query(number: int) -> JoinGraph:
    return parse(_RUNS[number][0], dict.fromkeys("ABC", SCHEMA))


def _engine(number: int, **more: Any) -> Engine:
    options = dict(_RUNS[number][1])
    if "limits" in options:
        options["limits"] = Limits(probes=options["limits"])
    return Engine(_query(number), **options, **more)


@cache
def _checkpoint(number: int) -> bytes:
    engine = _engine(number)
    for push in range(_PUSHES):
        engine.push({name: batch(push, name) for name in _query(number).sources})
    return engine.checkpoint()


def attack_checkpoint(number: int) -> dict[str, int]:
    """Restore a mutated checkpoint and push to it; how it ended."""
    random = Random(number)
    run = random.randrange(len(_RUNS))
    blob = signed(mutated(_checkpoint(run), random))
    try:
        engine = Engine.restore(_query(run), blob)
    except PenstockError:
        return {"refused": 1}
    try:
        for push in range(_PUSHES, _PUSHES + 2):
            engine.push({name: batch(push, name) for name in _query(run).sources})
        engine.checkpoint()
    except PenstockError:
        return {"refused later": 1}
    return {"went on": 1}


@cache
def _stream(name: str) -> tuple[bytes, int]:
    """A batch of stream ``name`` as Arrow writes it, and where its values begin."""
    sink = pa.BufferOutputStream()
    clean = batch(1, name)
    with pa.ipc.new_stream(sink, clean.schema) as writer:
        writer.write_batch(clean)
    data = sink.getvalue().to_pybytes()
    return data, len(data) - pa.ipc.get_record_batch_size(clean)


def attack_batch(number: int) -> dict[str, int]:
    """Push an Arrow batch from a mutated stream; how it ended."""
    random = Random(number)
    run = random.randrange(len(_RUNS))
    sources = list(_query(run).sources)
    name = random.choice(sources)
    data, body = _stream(name)
    # What is before the values says where they are: most changes of it are refused by pyarrow.
    data = mutated(data, random, 2, body if random.random() < 0.5 else 0)
    try:
        hostile = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, MemoryError):
        return {"not Arrow": 1}
    engine = _engine(run)
    try:
        for push in range(4):
            batches: dict[str, Any] = {each: batch(push, each) for each in sources}
            if push == 1:
                batches[name] = hostile
            engine.push(batches)
    except PenstockError:
        return {"refused": 1}
    return {"went on": 1}


ATTACKS: dict[str, Callable[[int], dict[str, int]]] = {
    "arrow": attack_batch,
    "checkpoints": attack_checkpoint,
    "memory": attack_by_no_memory,
    "signals": attack_by_signals,
}


def attack_all(
    kind: str, numbers: range, memory: int, tell: Callable[[str], None]
) -> tuple[Counter[str], int]:
    """All attacks with ``numbers``, in child processes with ``memory`` bytes of address space.

    Outcomes and how many there were, and the number of findings, each of which was told.
    """
    outcomes: Counter[str] = Counter()
    findings, start = 0, numbers.start
    context = multiprocessing.get_context("spawn")  # A child of a process with threads may hang.
    while start < numbers.stop:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_attack, args=(kind, start, numbers.stop, memory, theirs))
        child.start()
        theirs.close()
        while True:
            try:
                number, outcome, problem = ours.recv()
            except EOFError:
                break
            start = number + 1
            if problem:
                findings += 1
                tell(f"{kind} {number}: {problem}")
            else:
                outcomes.update(outcome)
        child.join()
        if child.exitcode != 0:
            findings += 1
            endless = child.exitcode == -signal.SIGPROF
            how = f"had no end in {_LONGEST} s" if endless else f"ended with {child.exitcode}"
            tell(f"{kind} {start}: the process {how}")
            start += 1
    return outcomes, findings


def _attack(kind: str, start: int, stop: int, memory: int, wire: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    warnings.simplefilter("ignore")
    for number in range(start, stop):
        signal.setitimer(signal.ITIMER_PROF, _LONGEST)  # Its signal ends the process.
        try:
            wire.send((number, ATTACKS[kind](number), ""))
        except Exception as problem:
            wire.send((number, {}, f"{type(problem).__name__}: {problem}"[:300]))

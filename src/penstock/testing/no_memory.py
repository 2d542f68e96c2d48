"""Memory that is not there, at every place where it is asked for; answers stay exact.

The memory of numpy's arrays, and of arrays that are made inside kernels, is asked for through
functions that can be replaced. They are, by ones that count, and that give nothing to a chosen
request: only to that one, or to all that follow until the call is over, too, as it is when memory
has run out. Each push of a random query is made again and again, failing at
its first request, its second, and so on, until it needs no more; an engine that had kept a trace of
a failed attempt would answer wrongly, and one that gives itself up is a finding, too.

(The small objects of CPython and the memory of Arrow are not among it: libraries do not survive a
failure of the first, and the pool of the second cannot be replaced from Python. The engine asks
Arrow for memory only where a push can be undone.)
"""

from __future__ import annotations

import ctypes
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numpy as np
import pyarrow as pa
from numba import cfunc, njit, types
from numba.core.runtime import _nrt_python as nrt
from numpy._core._multiarray_umath import _ARRAY_API  # type: ignore[import-not-found]

from penstock import Engine, Limits
from penstock.query.join_graph import JoinGraph
from penstock.query.parse import parse
from penstock.testing.case import Case
from penstock.testing.checks import check_case
from penstock.testing.generators import generate
from penstock.testing.random_plan import random_plan

Answer = TypeVar("Answer")

_ARMED, _LEFT, _REFUSED, _ALL = range(4)
"""Whether requests are counted; how many are still granted; how many were refused; whether all are
refused after the first."""
_SET_HANDLER = 304
"""The place of PyDataMem_SetHandler in numpy's table of functions, which is part of its ABI."""
_LEAP = 0.3
"""A push has some hundred requests. The first are refused one after the other, then it goes on in
random steps of up to such a part of what was granted: other numbers, other requests."""

_LARGE_EVERY = 8
"""One of so many attacks is on a large query: what is packed and swept when much of it has gone is
not to be seen in small ones."""
_LARGE = (
    "SELECT A.k AS k, COUNT(*) AS n, MIN(B.s) AS m, SUM(B.d) AS d "
    "FROM A [RANGE 40 SECONDS], B [RANGE 40 SECONDS] WHERE A.k = B.k GROUP BY A.k",
    "SELECT A.v AS v, MIN(B.k) AS m, MAX(A.s) AS s "
    "FROM A [ROWS 60], B [ROWS 60] WHERE A.v = B.v GROUP BY A.v",
    "SELECT A.s AS s FROM A [RANGE 30 SECONDS] EXCEPT SELECT B.s AS s FROM B [RANGE 20 SECONDS]",
    "SELECT A.s AS a, C.s AS c FROM A [RANGE 30 SECONDS], B [RANGE 5 SECONDS], "
    "C [RANGE 90 SECONDS] WHERE A.k = B.k AND B.v = C.v",
    "SELECT A.k AS k, B.s AS s FROM A [ROWS 300], B [PARTITION BY v ROWS 9] WHERE A.k = B.k",
)
_FRESH = "FRESHNESS 1 HOUR"
_OWING = (
    f"SELECT A.s AS a, C.s AS c FROM A [RANGE 30 SECONDS] {_FRESH}, "
    f"B [RANGE 30 SECONDS] {_FRESH}, C [RANGE 60 SECONDS] {_FRESH} WHERE A.v = B.v AND B.k = C.k",
    f"SELECT A.k AS k, B.s AS s FROM A [RANGE 20 SECONDS] {_FRESH}, "
    f"B [RANGE 50 SECONDS] {_FRESH} WHERE A.v = B.v",
    f"SELECT A.k AS k, B.k AS b, C.v AS c FROM A [RANGE 20 SECONDS] {_FRESH}, "
    f"B [RANGE 30 SECONDS] {_FRESH}, C [RANGE 20 SECONDS] {_FRESH} "
    "WHERE A.v = B.v AND B.v = C.v AND A.k = C.k",
)
"""Queries that owe probes, every second of the large ones; none of their results is ever stale."""
_OWED_PROBES = 25.0
"""Probes per second that they may make, where they need forty for each stream."""
_LARGE_PUSHES = 14
_LARGE_ROWS = 400

_libc = ctypes.CDLL(None)
_malloc, _calloc, _realloc, _free = _libc.malloc, _libc.calloc, _libc.realloc, _libc.free
for _call, _count in ((_malloc, 1), (_calloc, 2), (_realloc, 2), (_free, 1)):
    _call.argtypes, _call.restype = [ctypes.c_ssize_t] * _count, ctypes.c_ssize_t
_free.restype = None


class _Allocator(ctypes.Structure):
    """PyDataMemAllocator."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("state", "malloc", "calloc", "realloc", "free")
    ]


class _Handler(ctypes.Structure):
    """PyDataMem_Handler."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("calls", _Allocator)]


class Memory:
    """Memory of this process that can be made to run out. To be made before any kernel is loaded,
    since kernels are linked with the function that gives them memory."""

    def __init__(self) -> None:
        self._state = np.zeros(4, np.int64)
        where = self._state.ctypes.data
        *functions, in_kernels = _functions(where)
        llvm.add_symbol("NRT_MemInfo_alloc_aligned", in_kernels)
        self._handler = _Handler(b"counted", 1, _Allocator(where, *functions))
        api = ctypes.pythonapi
        api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        api.PyCapsule_New.restype = ctypes.py_object
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        table = api.PyCapsule_GetPointer(_ARRAY_API, None)
        entry = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_SET_HANDLER]
        set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(entry)
        address = ctypes.addressof(self._handler)
        self._capsule = api.PyCapsule_New(address, b"mem_handler", None)
        set_handler(self._capsule)

    @contextmanager
    def failing(self, after: int, for_good: bool) -> Iterator[None]:
        """Grant ``after`` more requests and refuse the next one; all of them, if ``for_good``."""
        self._state[_LEFT], self._state[_REFUSED], self._state[_ALL] = after, 0, for_good
        self._state[_ARMED] = 1
        try:
            yield
        finally:
            self._state[_ARMED] = 0

    @property
    def refused(self) -> int:
        """Requests that were refused since it began to fail."""
        return int(self._state[_REFUSED])


@njit
def _is_refused(state):  # type: ignore[no-untyped-def]
    if state[_ARMED] == 0:
        return False
    state[_LEFT] -= 1
    if state[_LEFT] >= 0 or (state[_ALL] == 0 and state[_LEFT] < -1):
        return False
    state[_REFUSED] += 1
    return True


def _functions(where: int) -> tuple[int, ...]:
    """Addresses of the functions that give memory, or do not; the last one is for kernels."""
    state, word = types.CPointer(types.int64), types.intp
    for_kernels = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_uint32)(
        nrt.c_helpers["MemInfo_alloc_aligned"]
    )

    @cfunc(word(state, word))
    def malloc(state, count):  # type: ignore[no-untyped-def]
        return 0 if _is_refused(state) else _malloc(max(count, 1))

    @cfunc(word(state, word, word))
    def calloc(state, count, each):  # type: ignore[no-untyped-def]
        return 0 if _is_refused(state) else _calloc(max(count, 1), max(each, 1))

    @cfunc(word(state, word, word))
    def realloc(state, old, count):  # type: ignore[no-untyped-def]
        return 0 if _is_refused(state) else _realloc(old, max(count, 1))

    @cfunc(types.void(state, word, word))
    def free(state, old, count):  # type: ignore[no-untyped-def]
        _free(old)

    @cfunc(types.boolean(state))
    def refuses(state):  # type: ignore[no-untyped-def]
        return _is_refused(state)

    asks = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_ssize_t)(refuses.address)

    @cfunc(word(word, types.uint32))
    def in_kernels(size, align):  # type: ignore[no-untyped-def]
        return 0 if asks(where) else for_kernels(size, align)

    made = (malloc, calloc, realloc, free, in_kernels)
    _KEPT.extend((*made, refuses, asks, for_kernels))
    return tuple(each.address for each in made)


_KEPT: list[Any] = []
"""Compiled functions whose addresses were given away."""


class Starved:
    """An engine whose calls find no memory, again and again, before they are let alone."""

    def __init__(self, engine: Engine, chance: random.Random, memory: Memory | None) -> None:
        self.engine = engine
        self.failures = 0
        """Calls that failed."""
        self._chance = chance
        self._memory = memory

    def push(self, batches: Mapping[str, Any], watermark: int | None = None) -> pa.Table:
        return self.call(lambda: self.engine.push(batches, watermark))

    def finish(self) -> pa.Table:
        return self.call(self.engine.finish)

    def call(self, what: Callable[[], Answer]) -> Answer:
        """The answer of ``what``, however often it takes."""
        memory = self._memory
        if memory is None:
            return what()
        after = 0
        while True:
            try:
                with memory.failing(after, self._chance.random() < 0.5):
                    return what()
            except MemoryError:
                if not memory.refused:
                    raise
                self.failures += 1
            after += 1 + int(_LEAP * after * self._chance.random())


@cache
def _memory() -> Memory:
    return Memory()


def attack_by_no_memory(number: int) -> dict[str, int]:
    """One query with its pushes, none of which finds memory at first; against the oracle, or if it
    is a large one, against an engine that does."""
    if number % _LARGE_EVERY == 0:
        return {"exact": 1, "failures": _run_large(number // _LARGE_EVERY)}
    case = generate(number)
    _run(case, number, None)  # Everything is compiled and imported: compilers need memory, too.
    return {"exact": 1, "failures": _run(case, number, _memory())}


def _run(case: Case, number: int, memory: Memory | None) -> int:
    """Calls that failed."""
    chance, choices = random.Random(number), random.Random(number)
    engines: list[Starved] = []

    def start(graph: JoinGraph, case: Case) -> Starved:
        engine = Engine(
            graph,
            plan=case.plan if choices.random() < 0.8 else "auto",
            feedback=choices.choice(("off", "jit", "bloom")),
            execution=choices.choice(("auto", "auto", "reference")),
            lateness=case.lateness,
            idle=case.idle,
            watermark_policy=case.policy,
            limits=choices.choice((None, Limits(memory=1))),  # Then most rows are on disk.
        )
        if engine._join.spilling is not None:
            engine._join.spilling.least_bytes = 0
        engines.append(Starved(engine, chance, memory))
        return engines[-1]

    def between(running: Any, push: int) -> Any:
        if choices.random() < 0.3 and len(case.graph().blocks) == 1:
            plan = random_plan(choices, [each.alias for each in case.graph().blocks[0].streams])
            running.engine.migrate(plan, strategy="jisc")
        if choices.random() < 0.15:
            running.engine = Engine.restore(case.graph(), running.engine.checkpoint())
        return running

    check_case(case, start, between)
    return sum(each.failures for each in engines)


def _run_large(number: int) -> int:
    """Calls that failed, of pushes with many rows and ever-new keys."""
    chance = random.Random(number)
    schema = pa.schema(
        [
            ("ts", pa.int64()),
            ("k", pa.int64()),
            ("v", pa.int64()),
            ("d", pa.float64()),
            ("s", pa.string()),
        ]
    )
    texts: Sequence[str] = _LARGE
    options: dict[str, Any] = {}
    if number % 2:
        texts = _OWING
        options = {"overload": "defer", "limits": Limits(probes=_OWED_PROBES)}
    graph = parse(texts[number // 2 % len(texts)], dict.fromkeys("ABC", schema), event_time="ts")
    memory = _memory()
    usual = Engine(graph, adapt="off")
    engine = Starved(Engine(graph, adapt="off", **options), chance, memory)
    owed, found, expected = False, Counter[str](), Counter[str]()
    for push in range(_LARGE_PUSHES):
        quiet = bool(options) and push > _LARGE_PUSHES // 2  # Time to pay.
        rows = _LARGE_ROWS // 20 if quiet else _LARGE_ROWS
        batches = {name: _rows(schema, push, chance, rows) for name in graph.sources}
        found.update(_texts(engine.push(batches)))
        expected.update(_texts(usual.push(batches)))
        owed |= engine.engine.owes
        # What is put off comes later, and once.
        assert found <= expected if options else found == expected, f"push {push} of {graph.text}"
    found.update(_texts(engine.finish()))
    expected.update(_texts(usual.finish()))
    assert found == expected, f"in the end, of {graph.text}"
    assert owed or not options, f"nothing was put off by {graph.text}"
    return engine.failures


def _texts(table: pa.Table) -> Iterator[str]:
    return map(repr, table.to_pylist())


def _rows(
    schema: pa.Schema, push: int, chance: random.Random, count: int = _LARGE_ROWS
) -> pa.RecordBatch:
    draw = np.random.RandomState(chance.randrange(2**31))
    times = np.sort(draw.randint(0, 10_000, count)) + 10_000 * push
    keys = draw.randint(0, _LARGE_ROWS, count) + _LARGE_ROWS // 2 * push
    columns = [
        times,
        keys,
        draw.randint(0, 40, count),
        draw.rand(count),
        [f"value {key}" for key in keys],
    ]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )

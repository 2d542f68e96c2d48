"""Memory of whatever sleeps, waits or filters is told, and is bounded when a stream is silent."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock import Engine, parse
from penstock.engine.feedback.feedback import Feedback

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
WINDOW = 10_000
PUSHES_PER_WINDOW = 5
SLACK = 1.4
"""Guards that come on by default, in any window, bring indexes; rings are powers of two."""
FOUR = (
    "SELECT A.k AS k FROM A [RANGE 10 SECONDS], B [RANGE 10 SECONDS], C [RANGE 10 SECONDS], "
    "D [RANGE 10 SECONDS] WHERE "
)
CASES = {
    "left-deep": ("A.k = B.k AND B.v = C.v AND A.v = D.k AND C.k = D.v", "(((A B) C) D)"),
    "bushy": ("A.k = B.k AND C.k = D.k AND A.v = C.v AND B.v = D.v", "((A B)(C D))"),
    "mjoin": ("A.k = B.k AND B.v = C.v AND C.k = D.v", "(A B C D)"),
}
FORMS: dict[str, str | Feedback] = {
    "default": "jit",
    "always": Feedback(adaptive=False),
    "bloom": Feedback(adaptive=False, detection="bloom"),
}


def rows(push: int, source: str, count: int = 200) -> pa.Table:
    draw = np.random.RandomState(17 * push + ord(source))
    times = np.sort(draw.randint(0, WINDOW // PUSHES_PER_WINDOW, count))
    times += push * WINDOW // PUSHES_PER_WINDOW
    return pa.table([times, draw.randint(0, 300, count), draw.randint(0, 300, count)], SCHEMA)


def engine_of(case: str, form: str) -> Engine:
    condition, plan = CASES[case]
    query = parse(FOUR + condition, dict.fromkeys("ABCD", SCHEMA))
    return Engine(query, plan=plan, feedback=FORMS[form], idle=WINDOW)


def held(roots: Iterable[Any]) -> int:
    """Bytes of all arrays that can be reached from ``roots``, each once, with whatever part of
    their memory nobody uses."""
    skipped = (type, types.ModuleType, types.FunctionType, types.MethodType, pa.Array)
    seen, todo, arrays = set(), list(roots), {}
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, skipped):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            while isinstance(each.base, np.ndarray):
                each = each.base
            arrays[id(each)] = each.nbytes
        else:
            todo += gc.get_referents(each)
    return sum(arrays.values())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_held_is_told(case: str, form: str) -> None:
    """Windows, states, those who wait, filters and indexes: found by following references."""
    engine = engine_of(case, form)
    slept = 0
    for push in range(8 * PUSHES_PER_WINDOW):
        engine.push({name: rows(push, name) for name in ("ABCD" if push < 12 else "ABC")})
        slept = max(slept, engine.metrics()["feedback"]["asleep"])
        if push % PUSHES_PER_WINDOW:
            continue
        (tree,) = engine.trees
        guards = tree.guarding.guards
        found = held([*tree.leaves.values(), *tree.kept, *(g.waiting for g in guards),
                      *(g.filter for g in guards), *(g.index for g in guards)])  # fmt: skip
        told = engine.metrics()["state"]["bytes"]
        assert abs(found - told) <= 4096 + 0.005 * found, f"push {push}: {found} held, {told} told"
    assert slept > 100 or form == "default"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_silent_stream_keeps_nobody_asleep_for_ever(case: str, form: str) -> None:
    """Fifty windows with one silent stream hold no more than three, and as many sleep."""
    engine = engine_of(case, form)
    told: list[int] = []
    asleep: list[int] = []
    for push in range(50 * PUSHES_PER_WINDOW):
        engine.push({name: rows(push, name) for name in ("ABCD" if push < 3 else "ABC")})
        if (push + 1) % PUSHES_PER_WINDOW == 0:
            metrics = engine.metrics()
            told.append(metrics["state"]["bytes"])
            asleep.append(metrics["feedback"]["asleep"])
    early = max(told[:3])
    assert told[-1] <= 1.1 * early
    # By default guards come when looks have been paid for; until then states are as without.
    assert max(told) <= SLACK * max(told[:6] if form == "default" else told[:3])
    # The clock is a window behind the newest row, and rows live for one.
    most = 3 * 3 * PUSHES_PER_WINDOW * len(rows(0, "A"))
    assert max(asleep) <= most


def test_without_idle_it_does() -> None:
    """What the bound above is about: the test can fail."""
    condition, plan = CASES["left-deep"]
    query = parse(FOUR + condition, dict.fromkeys("ABCD", SCHEMA))
    engine = Engine(query, plan=plan, feedback=FORMS["always"])
    asleep = []
    for push in range(12 * PUSHES_PER_WINDOW):
        engine.push({name: rows(push, name) for name in ("ABCD" if push < 3 else "ABC")})
        asleep.append(engine.metrics()["feedback"]["asleep"])
    assert asleep[-1] > 2 * asleep[3 * PUSHES_PER_WINDOW]
    assert list(engine.silent()) == ["D"]

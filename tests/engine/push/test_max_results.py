"""A push that would make more results than ``max_results`` is refused, and no other; afterwards the
engine goes on as if it had never been asked."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.state import working_memory
from penstock.engine.state.available_memory import available_memory, memory_of_machine
from penstock.engine.state.working_memory import BYTES_WITHOUT_A_LOOK, PART_OF_LEFT, WORKING
from penstock.errors import OptionError, TooManyResults
from penstock.testing.compare import assert_same_rows
from penstock.testing.generators import generate

pytestmark = pytest.mark.filterwarnings("ignore::penstock.errors.PenstockWarning")

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.int64()), ("name", pa.string())])
TWO = "FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] "
PLAIN = f"SELECT A.ts AS a, B.ts AS b {TWO}WHERE A.x = B.x"


def rows(count: int, value: int = 7, text: str = "a") -> pa.Table:
    return pa.table([np.zeros(count, np.int64), np.full(count, value), [text] * count], SCHEMA)


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_refused_pushes_leave_no_trace(execution: str) -> None:
    """Random queries, plans and batches; the oracle never hears of what was refused."""
    chance = random.Random(1)
    refused = taken = 0
    for number in range(60):
        case = generate(number)
        graph = case.graph()
        most = chance.choice([1, 2, 4, 8, 20])
        engine = penstock.Engine(
            graph,
            plan=case.plan,
            lateness=case.lateness,
            idle=case.idle,
            watermark_policy=case.policy,
            execution=execution,
            feedback=chance.choice(["off", "jit", "bloom"]),
            max_results=most,
        )
        oracle = case.oracle(graph)
        is_told = graph.emission == "istream" and not graph.is_grouped and not graph.minus
        for push, batches in enumerate(case.pushes):
            watermark = case.watermark(push)
            before = engine.metrics()["rows"]
            try:
                found = engine.push(batches, watermark)
            except TooManyResults as problem:
                told = str(problem)
                assert engine.metrics()["rows"] == before
                refused += "max_results" in told
                if is_told:  # The same push without the limit makes more.
                    free = penstock.Engine.restore(graph, engine.checkpoint(), max_results=None)
                    assert len(free.push(batches, watermark)) > most
                continue
            taken += 1
            expected = oracle.push(batches, watermark)
            assert_same_rows(found, expected, graph, context=f"push {push}\n{case}")
            assert not is_told or len(found) <= most
        assert_same_rows(engine.finish(), oracle.finish(), graph, context=case)
    assert refused > 40
    assert taken > 120


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"SELECT COUNT(*) AS n {TWO}WHERE A.x = B.x GROUP BY A.x",
        f"SELECT DSTREAM A.ts AS a {TWO}WHERE A.x = B.x",
        f"SELECT RSTREAM A.ts AS a {TWO}WHERE A.x = B.x",
        f"SELECT A.ts AS a, B.ts AS b {TWO}WHERE A.x <= B.x",
        f"SELECT A.ts AS a {TWO}WHERE A.x = B.x AND A.ts + B.ts < 1 + A.x * B.x",
        f"SELECT A.name AS a {TWO}WHERE A.name = B.name",
    ],
)
@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_the_bound_is_exact(text: str, execution: str) -> None:
    query = penstock.parse(text, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, execution=execution, max_results=12)
    engine.push({"A": rows(3)})
    for count in (5, 400):
        with pytest.raises(TooManyResults, match="max_results = 12"):
            engine.push({"B": rows(count)})
    engine.push({"B": rows(4)})
    assert engine.metrics()["rows"] == 7


def test_what_is_told() -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, max_results=50)
    engine.push({"A": rows(30)})
    with pytest.raises(TooManyResults) as refused:
        engine.push({"B": rows(4)})
    assert str(refused.value) == (
        "a push would make more than max_results = 50 results; its 4 rows make 120 or more, 30 of "
        "each row; in the join A.x = B.x, 4 of 4 rows of B have B.x = 7; push fewer rows at once, "
        "make windows shorter, add a predicate, or raise max_results"
    )
    assert refused.value.made == 120


def test_many_results_are_not_made_before_they_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a push of nine million results asks for is bounded by the limit, not by the answer."""
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, max_results=1_000)
    engine.push({"A": rows(3_000)})
    asked: list[int] = []
    ask = WORKING.ask_bytes

    def note(made: int, size: int) -> None:
        asked.append(size)
        ask(made, size)

    monkeypatch.setattr(WORKING, "ask_bytes", note)
    with pytest.raises(TooManyResults, match="max_results"):
        engine.push({"B": rows(3_000)})
    made = 3_000 * 3_000 * 8
    assert max(asked, default=0) < made


def test_pieces_are_as_small_as_the_bound() -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, max_results=100)
    engine.push({"A": rows(30)})
    assert sum(map(len, engine.push_in_pieces({"B": rows(40)}, 1_000))) == 1_200


def test_what_a_host_has_had_before_is_taken_in() -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, max_results=10)
    assert len(engine.push({"A": rows(5), "B": rows(5)}, again=True)) == 25
    with pytest.raises(TooManyResults):
        engine.push({"A": rows(5)})


def test_the_bound_survives_a_checkpoint() -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, max_results=10)
    engine.push({"A": rows(5)})
    again = penstock.Engine.restore(query, engine.checkpoint())
    with pytest.raises(TooManyResults, match="max_results = 10"):
        again.push({"B": rows(5)})
    assert (
        len(penstock.Engine.restore(query, again.checkpoint(), max_results=25).push({"B": rows(5)}))
        == 25
    )


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "many"])
def test_mistakes(value: object) -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    with pytest.raises(OptionError, match=r"max_results=.* 1 or more"):
        penstock.Engine(query, max_results=value)  # type: ignore[arg-type]


def test_deferred_results_belong_to_no_push() -> None:
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    with pytest.raises(OptionError, match="overload='defer' makes results later"):
        penstock.Engine(query, overload="defer", max_results=5)


# -- memory that is left -----------------------------------------------------------------------


@pytest.mark.parametrize("execution", ["auto", "reference"])
def test_memory_that_is_not_left(execution: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has plenty, and others have taken it: the push is refused, not ended."""
    query = penstock.parse(PLAIN, dict.fromkeys("AB", SCHEMA))
    engine = penstock.Engine(query, execution=execution)
    engine.push({"A": rows(3_000)})
    left = 2 * BYTES_WITHOUT_A_LOOK
    with monkeypatch.context() as patch:
        patch.setattr(working_memory, "available_memory", lambda: left)
        with pytest.raises(TooManyResults, match=r"where 115 MiB are allowed"):
            engine.push({"B": rows(3_000)})
    assert int(PART_OF_LEFT * left) >> 20 == 115
    assert len(engine.push({"B": rows(2)})) == 6_000


def test_texts_of_the_answer_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million results of a kilobyte each do not fit into what their row numbers do."""
    text = f"SELECT A.name AS a {TWO}WHERE A.x = B.x"
    engine = penstock.Engine(penstock.parse(text, dict.fromkeys("AB", SCHEMA)))
    engine.push({"A": rows(1_000, text="x" * 1_000)})
    with monkeypatch.context() as patch:
        patch.setattr(working_memory, "available_memory", lambda: 500 << 20)
        with pytest.raises(TooManyResults, match="500 MiB of memory are left"):
            engine.push({"B": rows(1_000)})
    assert len(engine.push({"B": rows(2)})) == 2_000


def test_the_group_of_a_process(tmp_path: Path) -> None:
    """The least of all groups above it; what files hold counts as free."""
    own = tmp_path / "sys/fs/cgroup/slice/job"
    own.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/slice/job\n")
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 8000000 kB\n")
    (own / "memory.max").write_text("max\n")
    (own.parent / "memory.max").write_text("1000000\n")
    (own.parent / "memory.current").write_text("900000\n")
    (own.parent / "memory.stat").write_text("anon 5\ninactive_file 300000\n")
    assert available_memory(tmp_path) == 400_000
    assert memory_of_machine(tmp_path) == 1_000_000


def test_the_first_version_of_groups(tmp_path: Path) -> None:
    own = tmp_path / "sys/fs/cgroup/memory/job"
    own.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("5:cpu:/other\n4:memory:/job\n")
    (own / "memory.limit_in_bytes").write_text("1000\n")
    (own / "memory.usage_in_bytes").write_text("600\n")
    assert available_memory(tmp_path) == 400

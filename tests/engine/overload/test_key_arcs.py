"""Rows that are chosen by key: who belongs together comes in together, and each has its time."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.engine.overload.door import Door
from penstock.engine.overload.key_arcs import TURN, Arc, KeyArcs, length_for
from penstock.engine.overload.row_weights import RowWeights
from penstock.engine.state.composites import Composites
from penstock.plan.stream_set import StreamSet

KEYS = 2_000


def graph(where: str, **types: pa.DataType) -> penstock.JoinGraph:
    """Three streams with the columns x and y; ``types`` are those of x that differ."""
    schemas = {
        name: pa.schema(
            [
                *(("id", pa.int64()), ("ts", pa.int64())),
                *(("x", types.get(name, pa.int64())), ("y", pa.int64())),
            ]
        )
        for name in "ABC"
    }
    windows = ", ".join(f"{name} [RANGE 10 SECONDS]" for name in "ABC")
    return penstock.parse(f"SELECT A.id AS a FROM {windows} WHERE {where}", schemas=schemas)


def rows(x: pa.Array, y: pa.Array | None = None) -> pa.Table:
    """Rows with these keys; the newest is the first."""
    count = len(x)
    columns = {"id": np.arange(count), "ts": np.arange(count)[::-1].copy(), "x": x}
    return pa.table(columns | {"y": np.zeros(count, np.int64) if y is None else y})


@pytest.mark.parametrize(
    "type_",
    [pa.int64(), pa.int16(), pa.float64(), pa.string(), pa.date32(), pa.decimal128(38, 2)],
    ids=str,
)
def test_rows_with_one_key_come_in_together(type_: pa.DataType) -> None:
    door = Door(graph("A.x = B.x AND B.x = C.x", **dict.fromkeys("ABC", type_)))
    door.open_by_key(0.4)
    chance = np.random.default_rng(3)
    numbers = {name: pa.array(chance.permutation(KEYS), pa.int32()) for name in "ABC"}
    batches = {name: rows(each.cast(type_)) for name, each in numbers.items()}
    taken = door.admit(batches, 0, turn=0.7)
    keys = {name: set(each.column("x").to_pylist()[1:]) for name, each in taken.items()}
    assert len(keys["A"] ^ keys["B"]) <= 3 >= len(keys["B"] ^ keys["C"])  # But for the newest.
    assert len(keys["A"]) == pytest.approx(0.4 * KEYS, rel=0.15)
    assert door.left_out == {name: KEYS - len(each) for name, each in taken.items()}
    assert not door.weights
    assert door.arcs == dict.fromkeys("ABC", Arc(0.7, 0.4))


def test_a_stream_with_two_keys_has_both_in_the_arc() -> None:
    door = Door(graph("A.x = B.x AND B.y = C.y"))
    door.open_by_key(0.5)
    chance = np.random.default_rng(3)
    x, y = (pa.array(chance.integers(0, 10**9, 4 * KEYS)) for _ in "xy")
    taken = door.admit({"A": rows(x, y), "B": rows(x, y), "C": rows(x, y)}, 0)
    counts = {name: len(each) / (4 * KEYS) for name, each in taken.items()}
    assert counts == pytest.approx({"A": 0.5, "B": 0.25, "C": 0.5}, abs=0.03)
    both = set(taken["A"]["id"].to_pylist()) & set(taken["C"]["id"].to_pylist())
    assert len(both ^ set(taken["B"]["id"].to_pylist())) <= 1
    same = door.admit({"B": rows(x, x)}, 0)["B"]
    assert len(same) / (4 * KEYS) == pytest.approx(0.25, abs=0.03)  # Classes are independent.


def test_every_key_has_its_time() -> None:
    door = Door(graph("A.x = B.x AND B.x = C.x"))
    door.open_by_key(0.25)
    batch = {"A": rows(pa.array(np.arange(KEYS)))}
    seen = np.zeros(KEYS, np.int64)
    for window in range(TURN):
        taken = door.admit(batch, 0, turn=3 + window / TURN)["A"]
        seen[taken["x"].to_numpy()] += 1
    assert seen[1:].min() >= 0.25 * TURN - 1
    assert seen[1:].max() <= 0.25 * TURN + 1


def test_what_is_no_key_of_several_streams_is_drawn() -> None:
    where = "A.x = B.x AND B.y < C.y"
    door = Door(graph(where))
    assert [set(each) for each in door.keys.classes] == [{"A", "B"}]
    door.open_by_key(0.3)
    batch = rows(pa.array(np.arange(KEYS)))
    taken = door.admit(dict.fromkeys("ABC", batch), 0)
    assert door.arcs.keys() == {"A", "B"}
    assert door.weights == {"C": KEYS / len(taken["C"])}
    assert not KeyArcs(graph("A.x + 1 = B.x AND B.y < C.y"), set("ABC")).classes
    assert not KeyArcs(graph("A.x = B.x AND B.y < C.y", A=pa.int32()), set("ABC")).classes
    assert not KeyArcs(graph(where), {"A", "C"}).classes


def test_batches_that_are_wrong_are_left_to_those_who_say_so() -> None:
    door = Door(graph("A.x = B.x AND B.x = C.x"))
    door.open_by_key(0.3)
    batch = rows(pa.array(np.arange(KEYS)))
    for wrong in (batch.drop_columns(["x"]), batch.set_column(2, "x", pa.array(["?"] * KEYS))):
        assert door.admit({"A": wrong}, 0)["A"] is wrong
        assert not door.arcs
    narrow = batch.set_column(2, "x", batch["x"].cast(pa.int16()))
    assert door.admit({"A": narrow}, 0)["A"]["id"].equals(door.admit({"A": batch}, 0)["A"]["id"])


def test_arcs_are_as_long_as_fits() -> None:
    keys = KeyArcs(graph("A.x = B.x AND B.y = C.y"), set("ABC"))
    work = {StreamSet.of("A"): 3.0, StreamSet.of("B"): 1.0, StreamSet.of("A", "B", "C"): 6.0}
    length = length_for(0.4, keys.bill(work))
    assert 3.0 * length + 7.0 * length**2 == pytest.approx(4.0, rel=1e-4)
    assert length_for(1.0, keys.bill(work)) == pytest.approx(1.0)
    assert keys.drift(1.0) == 1.0
    assert keys.drift(0.5) == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert keys.drift(2.0) == pytest.approx(4.0)


ROWS, WINDOW, PUSHES, DOMAIN = 300, 4, 12, 60


def weighed(seed: int, resume: bool) -> tuple[float, float, float]:
    """Pairs of all rows, those estimated from rows chosen by arcs that change, and the error."""
    chance = np.random.default_rng(seed)
    hashes = chance.random(DOMAIN)
    weights = RowWeights()
    leaves: Any = {s: SimpleNamespace(rows=SimpleNamespace(head=0, tail=0)) for s in "AB"}
    keys: dict[str, list[np.ndarray]] = {"A": [], "B": []}
    kept: dict[str, list[np.ndarray]] = {"A": [], "B": []}
    true = told = error = 0.0
    for push in range(PUSHES):
        arc = Arc(0.3 + push / 200, float(chance.choice([0.8, 0.5, 0.4])))
        for stream, leaf in leaves.items():
            keys[stream].append(chance.integers(0, DOMAIN, ROWS))
            kept[stream].append((hashes[keys[stream][-1]] - arc.start) % 1.0 < arc.length)
            leaf.rows.tail = sum(int(each.sum()) for each in kept[stream][: max(0, push - WINDOW)])
        weights.begin(leaves, {}, dict.fromkeys("AB", arc))
        assert weights.is_thin
        for stream, leaf in leaves.items():
            leaf.rows.head += int(kept[stream][-1].sum())
        alive = {s: slice(max(0, push - WINDOW) * ROWS, None) for s in "AB"}
        numbers = {s: np.cumsum(np.concatenate(kept[s])) - 1 for s in "AB"}
        every = {s: np.concatenate(keys[s]) for s in "AB"}
        match = every["A"][alive["A"], None] == every["B"][None, alive["B"]]
        count = match.shape[0] - ROWS
        match[:count, :count] = False  # Made before.
        true += match.sum()
        a, b = np.nonzero(match)
        is_in = {s: np.concatenate(kept[s])[alive[s]] for s in "AB"}
        both = is_in["A"][a] & is_in["B"][b]
        ids = {"A": numbers["A"][alive["A"]][a[both]], "B": numbers["B"][alive["B"]][b[both]]}
        own = {s: every[s][np.concatenate(kept[s])] for s in "AB"}
        classes = [{s: own[s].__getitem__ for s in "AB"}]
        weight = weights.weigh(Composites.undated(ids), chance, classes)
        told += len(ids["A"]) * weight.mean
        error += len(ids["A"]) * weight.mean * weight.blur
        if resume and push == PUSHES // 2:
            arcs, weights = weights.newest_arcs, RowWeights()
            weights.resume({}, arcs)
    return true, told, error


@pytest.mark.parametrize("resume", [False, True])
def test_results_stand_for_those_of_all_keys(resume: bool) -> None:
    runs = np.array([weighed(seed, resume) for seed in range(60)])
    ratios = runs[:, 1] / runs[:, 0]
    doubt = 0.08 * resume  # Which arcs older rows had is known about then.
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / math.sqrt(len(runs)) + doubt
    off = (runs[:, 1] - runs[:, 0]) / runs[:, 2]
    assert 0.2 < math.sqrt((off**2).mean()) < 1.5


def test_nothing_is_kept_about_windows_whose_rows_were_not_chosen() -> None:
    weights = RowWeights()
    leaves: Any = {"A": SimpleNamespace(rows=SimpleNamespace(head=0, tail=0))}
    weights.begin(leaves, {}, {"A": Arc(0.0, 0.5)})
    leaves["A"].rows.head = 10
    weights.begin(leaves, {})
    found = [(weights.is_thin, weights.length(leaves), len(weights.newest_arcs))]
    leaves["A"].rows.head, leaves["A"].rows.tail = 20, 10
    weights.begin(leaves, {})
    found.append((weights.is_thin, weights.length(leaves), len(weights.newest_arcs)))
    assert found == [(True, 0.5, 1), (False, 1.0, 0)]

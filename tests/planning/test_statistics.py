"""Statistics and limits: immutable values, checked when they are made, to and from JSON."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from penstock import Limits, Statistics
from penstock.errors import OptionError
from penstock.plan import StreamSet
from penstock.planning.unit_costs import UnitCosts

FULL = Statistics(
    rates={"A": 20, "B": np.float64(5.5), "C": 3},
    selectivities={("B", "A"): 0.05, ("A",): 0.5, frozenset(("A", "B", "C")): 0.25},
    observed={("A", "B", "C"): 0.001},
    sizes={"T": 500, ("A", "B"): 77},
    distinct={("A", "k"): 50},
    widths={"A": 40},
    demand={("A", "B"): 0.1},
    costs=UnitCosts(insert=1e-6),
    horizon=60,
)


ANY_STATISTICS: Any = Statistics
ANY_LIMITS: Any = Limits


def test_streams_are_named_in_any_order() -> None:
    assert FULL.selectivities[StreamSet.of("A", "B")] == 0.05
    assert FULL.sizes == {StreamSet.of("T"): 500.0, StreamSet.of("A", "B"): 77.0}


def test_survives_json_and_pickle() -> None:
    assert Statistics.from_text(FULL.to_text()) == FULL
    assert pickle.loads(pickle.dumps(FULL)) == FULL
    assert hash(Statistics.from_json(FULL.to_json())) == hash(FULL)
    few = Statistics.from_json({"rates": {"A": 1}})
    assert few == Statistics({"A": 1})
    assert few != FULL


def test_numbers_of_numpy_are_numbers() -> None:
    assert ANY_STATISTICS({"A": np.int64(3)}) == Statistics({"A": 3.0})


def test_is_immutable() -> None:
    with pytest.raises(AttributeError):
        FULL.rates = {}  # type: ignore[misc]
    with pytest.raises(TypeError):
        FULL.rates["A"] = 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ANY_STATISTICS({"A": -1}), "rates of 'A': expected 0 or more, not -1"),
        (lambda: ANY_STATISTICS({"A": float("nan")}), "finite"),
        (lambda: ANY_STATISTICS({"A": "fast"}), "expected a number, not 'fast'"),
        (lambda: ANY_STATISTICS({1: 5}), "name of a stream, not 1"),
        (lambda: ANY_STATISTICS([1]), "rates are a mapping, not list"),
        (lambda: ANY_STATISTICS({}, {("A", "B"): 1.5}), "share between 0 and 1, not 1.5"),
        (lambda: ANY_STATISTICS({}, {("A", "A"): 0.5}), "name a stream twice"),
        (lambda: ANY_STATISTICS({}, {("A", 1): 0.5}), r"streams such as \('A', 'B'\)"),
        (lambda: ANY_STATISTICS({}, {("A", "B"): 0.5, ("B", "A"): 0.4}), "given twice"),
        (lambda: ANY_STATISTICS({}, distinct={"A": 3}), r"\(stream, column\)"),
        (lambda: ANY_STATISTICS({}, distinct={("A", "k"): 0.5}), "1 or more"),
        (lambda: ANY_STATISTICS({}, costs={"insert": 1}), "UnitCosts, not dict"),
        (lambda: Statistics.from_json({"rate": {}}), "no statistic is called 'rate'"),
        (lambda: Statistics.from_json({}), "need rates"),
        (lambda: Statistics.from_json({"rates": {}, "sizes": {"A": 1, "BC": 2}}), "sizes"),
        (lambda: Statistics.from_text("{"), "no JSON"),
        (lambda: Statistics.from_text("[]"), "JSON object, not list"),
        (lambda: UnitCosts(insert=-1), "cost insert is 0 seconds or more"),
        (lambda: UnitCosts.from_json({"inserts": 1}), "no cost is called 'inserts'"),
        (lambda: ANY_LIMITS(cpu=0), "cpu=0 must be more than 0"),
        (lambda: ANY_LIMITS(cpu="half"), "share of a core"),
        (lambda: ANY_LIMITS(cpu=True), "share of a core"),
        (lambda: ANY_LIMITS(memory="2 gigs"), "is no size; expected bytes"),
        (lambda: ANY_LIMITS(memory="GiB"), "is no size"),
        (lambda: ANY_LIMITS(memory=-5), "must be more than 0"),
        (lambda: ANY_LIMITS(memory="0.2"), "less than a byte"),
        (lambda: ANY_LIMITS(probes=float("inf")), "must be more than 0"),
        (lambda: Limits.from_json({"ram": 1}), "no limit is called 'ram'"),
    ],
)
def test_a_mistake_is_told(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (1000, 1000),
        ("1000", 1000),
        ("1 kB", 1000),
        ("1KiB", 1024),
        ("1.5 MiB", 1572864),
        ("2GiB", 2 << 30),
        ("3 gb", 3_000_000_000),
        ("1TiB", 1 << 40),
        (2.9, 2),
    ],
)
def test_sizes_as_text(given: Any, size: int) -> None:
    assert Limits(memory=given).memory == size


def test_limits_survive_json() -> None:
    limits = Limits(cpu=0.5, memory="2GiB", probes=100)
    assert Limits.from_json(limits.to_json()) == limits
    assert str(limits) == "cpu 0.5 of a core, memory 2 GiB, 100 probes/s"
    assert str(Limits()) == "no limits"

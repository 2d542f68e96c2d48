"""An allocation is a value: JSON both ways, text, equality."""

from __future__ import annotations

import json
import pickle
import random

import pytest
from random_model import random_model

from penstock.overload import ALLOCATORS, Allocation, allocate, observed_model
from penstock.plan import StreamSet, read

A, B, C = (StreamSet.of(name) for name in "ABC")


@pytest.mark.parametrize("allocator", list(ALLOCATORS))
def test_json_both_ways(allocator: str) -> None:
    chance = random.Random(21)
    for _ in range(30):
        model = random_model(chance)
        freshness = {stream: 1.2 * window for stream, window in model.windows.items()}
        budget = model.saturation_resources * chance.random()
        found = allocate(model, budget, freshness, allocator)
        text = found.to_json()
        assert "Infinity" not in text
        assert "NaN" not in text
        assert Allocation.from_json(text) == found
        assert pickle.loads(pickle.dumps(found)) == found
        assert len({found, Allocation.from_json(text)}) == 1
        steps = json.loads(text)["half_way_joins"]
        assert [step["probing"] for step in steps] == [
            sorted(each.half_way_join.probing) for each in found.allowances
        ]


def test_an_allocation_explains_itself() -> None:
    model = observed_model(
        read("((A B) C)"),
        {"A": 100.0, "B": 100.0, "C": 100.0},
        {(A, B): 2.0, (B, A): 1.0, (A | B, C): 1.0, (C, A | B): 3.0},
        {A: 1000.0, B: 1000.0, C: 1000.0, A | B: 500.0},
    )
    assert str(allocate(model, 150, {"A": 15.0})) == (
        "tree-greedy: 150.0 of 150.0 probes/s, 25.0 % of what the whole load needs\n"
        "results: 300.0/s, 50.0 % of all\n"
        "freshness: 50.0 probes/s, 33.3 % of the budget\n"
        "  A ⋉ B    50.0 probes/s\n"
        "  B ⋉ A    0.0 probes/s\n"
        "  A B ⋉ C  0.0 probes/s\n"
        "  C ⋉ A B  100.0 probes/s\n"
        "age of the oldest result: A 15 s, B 15 s, C 10 s"
    )
    shed = allocate(model, 200, allocator="random-shedding")
    assert "input: 45.7 % is taken in, the rest is lost" in str(shed)

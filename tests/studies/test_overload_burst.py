"""The burst, small: what is put off comes later, what is dropped is known, memory is bounded."""

from __future__ import annotations

import pytest

from penstock_studies.overload_burst import (
    POLICIES,
    Policy,
    Row,
    run_burst,
    run_endless,
    summary,
)


def burst(policy: Policy, plan: str) -> list[Row]:
    return run_burst(policy, plan=plan, rate=25, phases=(15, 10, 110))


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
def test_each_policy_does_what_it_says(plan: str) -> None:
    exact, shed, defer = (burst(policy, plan) for policy in POLICIES)
    truth = summary(exact)["results"]
    assert summary(exact)["peak/capacity"] > 2
    assert summary(defer)["results"] == truth
    assert summary(defer)["most owed"] > 0
    assert summary(defer)["owed"] == 0
    assert not defer[-1]["short"]
    lost = truth - summary(shed)["results"]
    assert lost > 0
    assert abs(lost - shed[-1]["lost"]) < max(4 * shed[-1]["lost_error"], 0.2 * lost)
    # Windows are held for what is owed and no longer: afterwards nothing is left of it.
    assert defer[-1]["state_bytes"] <= 2 * exact[-1]["state_bytes"]
    # After the burst, what a push is allowed covers what it needs.
    assert all(row["needed"] <= max(row["allowed"], 0) for row in shed[-20:])


@pytest.mark.parametrize("plan", ["((A B) C)", "(A B C)"])
def test_a_burst_that_never_ends_keeps_its_memory_and_tells_its_loss(plan: str) -> None:
    rows = run_endless(plan=plan, rate=10, minutes=4)
    assert rows[1]["forgotten"] > 0
    assert rows[3]["owed"] < 1.1 * rows[1]["owed"]
    assert rows[3]["MiB"] < 1.2 * rows[1]["MiB"]
    end = rows[-1]
    assert end["owed"] == 0
    assert abs(end["missing"] - end["told"]) <= 2 * end["± error"]
    assert end["± error"] < 0.5 * end["missing"]

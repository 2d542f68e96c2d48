"""The contest of ``plan="auto"`` with plans by hand: data, plans and ratios are what they say."""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace

import pytest

import penstock
from penstock.errors import OptionError
from penstock.plan.notation import read
from penstock_studies.auto import study
from penstock_studies.auto.contest import AUTO, contest
from penstock_studies.auto.linked import linked
from penstock_studies.auto.workload import Source, Workload, uniform
from penstock_studies.auto.workloads import WORKLOADS, correlation

SMALL = linked(
    "small", "", dict.fromkeys("ABC", 200.0), {("A", "B"): 5.0, ("B", "C"): 0.5}, seconds=4.0
)


@pytest.mark.parametrize("make", WORKLOADS)
def test_every_plan_by_hand_is_one_of_its_query(make: object) -> None:
    workload = make()  # type: ignore[operator]
    query = workload.query
    assert len(workload.plans) >= 2
    for plan in workload.plans:
        read(plan).check(query)


def test_all_see_the_same_rows_and_give_the_same_results() -> None:
    ticks = itertools.count()
    found = contest(SMALL, rounds=2, clock=lambda: float(next(ticks)))
    assert set(found.cpu) == {AUTO, *SMALL.plans}
    assert found.results > 0
    # With a clock that ticks once a push, all cost the same.
    assert found.whole == found.second_half == 1.0


def test_batches_are_drawn_anew_but_alike() -> None:
    one, other = list(SMALL.batches()), list(SMALL.batches())
    assert one == other
    assert len(one) == SMALL.turns == 40
    assert one != list(replace(SMALL, seed=2).batches())
    assert sum(batch["A"].num_rows for batch in one) == 800


def test_rates_follow_time() -> None:
    sources = {"A": Source(lambda at: 100.0 if at < 1 else 10.0, uniform(x=5))}
    workload = Workload("", "", "A.x", "A.x > 1", sources, (), seconds=2.0)
    counts = [batch["A"].num_rows for batch in workload.batches()]
    assert counts == [10] * 10 + [1] * 10


def test_the_table_says_what_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    study.run(parser.parse_args(["--workload", "chain", "--share", "0.05", "--plans"]))
    told = capsys.readouterr().out
    assert "chain" in told
    assert "of 1 within 1.3 over the run" in told


@pytest.mark.parametrize("given", [["--workload", "x"], ["--share", "0"], ["--rounds", "0"]])
def test_a_mistake_is_told(given: list[str]) -> None:
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    with pytest.raises(OptionError):
        study.run(parser.parse_args(given))


def test_the_first_plan_joins_those_that_exclude_each_other_first() -> None:
    """Pairs say that all are alike; only joined samples say that no row has partners in both."""
    workload = correlation()
    engine = penstock.Engine(workload.query)
    engine.push(next(workload.batches()))
    assert str(engine.plan).startswith("((A B C")

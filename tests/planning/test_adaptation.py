"""When to change a plan: the rule, its hysteresis, its limits; and what a change costs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache

import pytest

from penstock.plan.notation import read
from penstock.plan.stream_set import StreamSet
from penstock.planning import adaptation
from penstock.planning.adaptation import NOT_YET, Decision, Memory, look
from penstock.planning.lessons import Measured
from penstock.planning.limits import Limits
from penstock.planning.migration_cost import ASKING, CHANGE, migration_cost
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.problem import Problem
from penstock.planning.smoothing import smoothed
from penstock.planning.statistics import Statistics
from penstock.planning.verdict import Choice
from penstock.planning.written_cost import written_cost
from penstock_studies.random_graph import chain_query

WINDOW = 10
QUERY = chain_query(("A", "B", "C"), (("A", "B"), ("A", "C")), WINDOW)
RATE = 10_000.0


@cache
def problem(b: float, c: float, rate: float = RATE) -> Problem:
    """A tuple of A has ``b`` partners in B and ``c`` in C."""
    shares = {("A", "B"): b / (rate * WINDOW), ("A", "C"): c / (rate * WINDOW)}
    return Problem(QUERY, Statistics(dict.fromkeys("ABC", rate), shares))


B_IS_SELECTIVE, C_IS_SELECTIVE = (0.01, 20.0), (20.0, 0.01)


def run(
    seen: Iterable[tuple[float, float]],
    plan: str = "((A B) C)",
    seconds: float = 1.0,
    memory: Memory | None = None,
    limits: Limits | None = None,
) -> tuple[list[Decision], Memory]:
    """One look every ``seconds``."""
    memory = memory or Memory()
    decisions = []
    for number, partners in enumerate(seen):
        decision, memory = look(
            problem(*partners), read(plan), limits or Limits(), memory, number * seconds
        )
        plan = decision.runs
        decisions.append(decision)
    return decisions, memory


def changes(decisions: list[Decision]) -> list[str]:
    return [each.rival for each in decisions if each.action == "migrate"]


def test_the_best_plan_is_kept() -> None:
    decisions, _ = run([B_IS_SELECTIVE] * 5)
    assert {each.reason for each in decisions} == {"it is the best plan"}
    assert all(each.rival == each.plan and each.gain == 0 for each in decisions)


def test_a_better_plan_that_repays_its_cost_is_taken_at_once() -> None:
    decisions, memory = run([B_IS_SELECTIVE] * 2 + [C_IS_SELECTIVE] * 3)
    assert changes(decisions) == ["((A C) B)"]
    taken = decisions[2]
    assert taken.action == "migrate"
    assert taken.at == 2.0
    assert taken.credit + taken.gain * taken.horizon >= taken.cost > 0
    assert taken.rival_cpu < taken.cpu
    assert memory.left == "((A B) C)"
    assert memory.debt < 0


def test_without_trust_the_regret_must_reach_the_cost_first() -> None:
    """Hiring skis: what the rival would have saved pays for the change, and not much more."""
    decisions, _ = run([C_IS_SELECTIVE] * 400, seconds=0.01, memory=Memory(trust=0.0))
    waiting = [each for each in decisions if each.reason == NOT_YET]
    assert waiting
    assert changes(decisions) == ["((A C) B)"]
    taken = next(each for each in decisions if each.action == "migrate")
    assert taken.cost <= taken.credit <= taken.cost + 0.02 * taken.gain
    assert taken.at == pytest.approx(taken.cost / taken.gain, abs=0.02)


def test_selectivities_that_swing_quickly_do_not_make_it_thrash() -> None:
    """Each swing is too short to repay a change: after a few lessons the plan stays."""
    swings = ([B_IS_SELECTIVE] * 2 + [C_IS_SELECTIVE] * 2) * 100
    decisions, memory = run(swings, seconds=0.004)
    assert len(changes(decisions)) <= 12
    assert changes(decisions[len(decisions) // 2 :]) == []
    assert memory.trust < 0.1


def test_slow_swings_are_followed_and_win_trust() -> None:
    swings = ([B_IS_SELECTIVE] * 20 + [C_IS_SELECTIVE] * 20) * 3
    decisions, memory = run(swings)
    assert changes(decisions) == ["((A C) B)", "((A B) C)"] * 2 + ["((A C) B)"]
    assert memory.trust == adaptation.MOST_TRUST


@pytest.mark.parametrize("length", [1, 2, 5, 20, 100])
def test_total_cost_is_never_far_from_that_of_one_plan(length: int) -> None:
    """Whatever the length of a swing: beyond a few lessons, changes never cost more than they
    gain."""
    swings = ([B_IS_SELECTIVE] * length + [C_IS_SELECTIVE] * length) * (200 // length)
    seconds = 0.01
    decisions, _ = run(swings, seconds=seconds)
    costs = [each.cost for each in decisions if each.action == "migrate"]
    spent = sum(costs) + seconds * sum(
        each.rival_cpu if each.action == "migrate" else each.cpu for each in decisions
    )
    fixed = sum(written_cost(problem(*p), read("((A B) C)")).cpu * seconds for p in swings)
    assert spent < 1.1 * fixed + 7 * max(costs)


def test_a_small_gain_is_not_trusted_but_pays_in_time() -> None:
    decisions, _ = run([(1.0, 0.95)] * 2, seconds=0.01)
    assert [each.action for each in decisions] == ["keep", "keep"]
    assert decisions[-1].reason == NOT_YET
    assert 0 < decisions[-1].gain < adaptation.WORTHWHILE * decisions[-1].cpu
    assert decisions[-1].horizon == 0.0
    decisions, _ = run([(1.0, 0.95)] * 400)
    (changed,) = [each for each in decisions if each.action == "migrate"]
    assert changed.credit >= changed.cost


def test_a_gain_of_the_moment_is_left_to_the_credit() -> None:
    """In a burst another plan is better; in the long run it is not."""
    plan, burst, usual = read("((A B) C)"), problem(*C_IS_SELECTIVE), problem(*B_IS_SELECTIVE)
    assert look(burst, plan, Limits(), Memory(), 0.0)[0].action == "migrate"
    decision, memory = look(burst, plan, Limits(), Memory(), 0.0, usual)
    assert (decision.action, decision.reason, decision.horizon) == ("keep", NOT_YET, 0.0)
    later = 2 * decision.cost / decision.gain
    assert look(burst, plan, Limits(), memory, later, usual)[0].action == "migrate"


def test_a_plan_that_costs_more_than_modelled_is_left_again() -> None:
    """The model flatters ((A B) C); measured, it costs three times as much."""
    at, tree = problem(0.01, 1.0), read("((A B) C)")
    mjoin = at.plan_of(mjoin_ordering(at))
    assert written_cost(at, tree).cpu < written_cost(at, mjoin).cpu
    memory = Memory(ratios={at.outline_of(mjoin): (1.0, 1.0)}, modelled=at.price(tree).cpu, at=0.0)
    measured = Measured(cpu=3 * at.price(tree).cpu)
    decision, memory = look(at, tree, Limits(), memory, 1.0, measured=measured)
    assert decision.action == "migrate"
    assert read(decision.rival) == mjoin
    assert decision.cpu == pytest.approx(3 * at.price(tree).cpu)
    decision, memory = look(at, mjoin, Limits(), memory, 2.0)
    assert decision.action == "keep"
    assert Memory.from_json(json.loads(json.dumps(memory.to_json()))) == memory


def test_measured_bytes_correct_what_fits() -> None:
    at, tree = problem(20.0, 20.0), read("((A B) C)")
    limit = Limits(memory=int(1.2 * at.price(tree).memory))
    kept, _ = look(at, tree, limit, Memory(), 1.0)
    assert kept.action == "keep"
    held = Measured(memory=1.5 * at.price(tree).memory)
    left, memory = look(at, tree, limit, Memory(), 1.0, measured=held)
    assert left.action == "migrate"
    assert left.reason == "it is over the limit of memory"
    assert left.memory == pytest.approx(1.5 * at.price(tree).memory)
    # The model alone would go back to it at once.
    stays, _ = look(at, read(left.rival), limit, memory, 2.0)
    assert stays.rival != "((A B) C)"


def test_better_probe_orders_are_a_gain_too() -> None:
    bad = "(A B C | A:B,C B:A,C C:A,B)"
    good = "(A B C | A:C,B B:A,C C:A,B)"
    here = problem(20.0, 0.01)
    assert written_cost(here, read(bad)).cpu > written_cost(here, read(good)).cpu
    assert written_cost(here, read(good)).cpu == pytest.approx(here.price(read(good)).cpu)
    assert migration_cost(here, read(bad), read(good)) == pytest.approx(CHANGE)


def test_over_a_limit_the_plan_changes_at_once_and_comes_back_with_room() -> None:
    at = problem(20.0, 0.01)
    tree, mjoin = at.price(read("((A B) C)")), at.price(read("(A B C)"))
    assert tree.memory > mjoin.memory
    limits = Limits(memory=int(1.05 * mjoin.memory))
    decisions, _ = run([(20.0, 20.0)], limits=limits)
    assert decisions[0].action == "migrate"
    assert decisions[0].reason == "it is over the limit of memory"
    assert decisions[0].rival_memory <= limits.memory  # type: ignore[operator]
    assert decisions[0].exceeded == ()


def test_no_plan_within_the_limits_is_said_and_the_nearest_taken() -> None:
    limits = Limits(memory=1000)
    decisions, _ = run([C_IS_SELECTIVE] * 3, limits=limits)
    assert decisions[0].action == "migrate"
    assert decisions[0].exceeded == ("memory",)
    assert "need more memory than there is" in decisions[0].reason
    assert [each.action for each in decisions[1:]] == ["keep", "keep"]
    assert decisions[-1].exceeded == ("memory",)


def test_a_limit_on_cpu_is_met_by_the_plan_with_the_least() -> None:
    at = problem(*C_IS_SELECTIVE)
    limits = Limits(cpu=1.2 * at.price(read("((A C) B)")).cpu)
    decisions, _ = run([C_IS_SELECTIVE], limits=limits)
    assert decisions[0].action == "migrate"
    assert decisions[0].reason == "it is over the limit of cpu"
    assert decisions[0].rival_cpu <= limits.cpu  # type: ignore[operator]


def test_states_that_are_carried_over_cost_nothing() -> None:
    query = chain_query(tuple("ABCD"), (("A", "B"), ("A", "C"), ("A", "D")), WINDOW)
    shares = {("A", x): 1 / (RATE * WINDOW) for x in "BCD"}
    four = Problem(query, Statistics(dict.fromkeys("ABCD", RATE), shares))
    same = migration_cost(four, read("(((A B) C) D)"), read("(((A B) C) D)"))
    one = migration_cost(four, read("(((A B) C) D)"), read("(((A B) D) C)"))
    two = migration_cost(four, read("(((A B) C) D)"), read("(((A C) D) B)"))
    assert same == 0
    assert CHANGE < one < two


def test_every_push_until_nothing_is_missing_has_its_price() -> None:
    """In proportion to the pushes per second; none for a state that is carried over."""
    query = chain_query(tuple("ABCD"), (("A", "B"), ("A", "C"), ("A", "D")), WINDOW)
    shares = {("A", x): 1 / (RATE * WINDOW) for x in "BCD"}
    costs = []
    for pushes in (0.0, 10.0, 20.0):
        statistics = Statistics(dict.fromkeys("ABCD", RATE), shares, pushes=pushes)
        four = Problem(query, statistics)
        costs.append(migration_cost(four, read("(((A B) C) D)"), read("(((A C) D) B)")))
        carried = migration_cost(four, read("(((A B) C) D)"), read("((A B) C D)"))
        assert carried < CHANGE + 10 * four.blocks[0].costs.index * RATE * WINDOW
    none, some, more = costs
    assert some > none
    assert more - none == pytest.approx(2 * (some - none))
    assert some - none <= 2 * ASKING * 10.0 * WINDOW


def test_memory_survives_json() -> None:
    _, memory = run([B_IS_SELECTIVE, C_IS_SELECTIVE, C_IS_SELECTIVE])
    assert memory.left is not None
    assert memory.gains
    assert Memory.from_json(json.loads(json.dumps(memory.to_json()))) == memory


def test_smoothed_statistics_lie_between() -> None:
    pair = StreamSet.of("A", "B")
    before = Statistics({"A": 10.0, "B": 10.0}, {("A", "B"): 0.001})
    now = Statistics({"A": 30.0, "B": 10.0}, {("A", "B"): 0.1})
    assert smoothed(None, now, 0.5) == now
    assert smoothed(before, now, 1.0) == now
    half = smoothed(before, now, 0.5)
    assert half.rates == {"A": 20.0, "B": 10.0}
    assert half.selectivities[pair] == pytest.approx(0.01)
    assert smoothed(before, Statistics({"A": 30.0, "C": 1.0}), 0.5).rates == {"A": 20.0, "C": 1.0}


def test_of_equally_good_plans_the_one_that_is_cheap_to_get_to_is_taken() -> None:
    """Two partners along each link, but twenty from A to C: an mjoin need not go along that one."""
    links = (("A", "B"), ("B", "C"), ("A", "C"))
    rows = RATE * WINDOW
    shares = {("A", "B"): 2 / rows, ("B", "C"): 2 / rows, ("A", "C"): 20 / rows}
    cycle = Problem(
        chain_query(("A", "B", "C"), links, WINDOW), Statistics(dict.fromkeys("ABC", RATE), shares)
    )
    decision, _ = look(cycle, read("((A C) B)"), Limits(), Memory(), 0.0)
    assert decision.action == "migrate"
    assert decision.rival.startswith("(A B C")
    least = cycle.price(read("((A B) C)"))
    assert decision.rival_cpu < 1.2 * least.cpu
    assert decision.cost < 0.5 * migration_cost(cycle, read("((A C) B)"), read("((A B) C)"))


@pytest.mark.parametrize(
    ("partners", "begins"), [((1.0, 0.5), "(A B C)"), (C_IS_SELECTIVE, "((A C) B)")]
)
def test_a_first_batch_must_be_clear_about_storing_joins(
    partners: tuple[float, float], begins: str
) -> None:
    """One batch may be that of a burst, and an mjoin costs least to leave."""
    seen = problem(*partners)
    least = adaptation.best_plan(seen, Limits())
    assert isinstance(least, Choice)
    assert seen.outline(least.candidate) == "((A C) B)"
    decision = adaptation.first_look(seen, read("(A B C)"), Limits())
    assert seen.outline_of(read(decision.runs)) == begins
    assert decision.rival_cpu <= least.candidate.cost.cpu / (1 - adaptation.DOUBTED)

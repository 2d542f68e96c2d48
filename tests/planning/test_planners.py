"""The planners keep to the limits, agree with JTree-Finder, and say why when they refuse."""

from __future__ import annotations

import itertools
import random

import pytest
from brute_force import World, all_trees, cost
from planning_graphs import NAMES, join_query, paper_example, random_problem

import penstock
from penstock.errors import NoQualifiedPlan, OptionError
from penstock.plan import Join, Leaf, Node, Plan, read, walk
from penstock.planning.bjtree_ordering import bjtree_ordering
from penstock.planning.block import Cost
from penstock.planning.cost_model import least_cpu, least_memory
from penstock.planning.jtree_finder import jtree_finder
from penstock.planning.limits import Limits
from penstock.planning.mjoin_ordering import mjoin_ordering
from penstock.planning.planner import PLANNERS, decide
from penstock.planning.probe_orders import EXACT, probe_orders
from penstock.planning.problem import Problem
from penstock.planning.regroup import regroup
from penstock.planning.shape import join, joins_of, leaf, merge, mjoin
from penstock.planning.state_removal import state_removal
from penstock.planning.state_selection import state_selection
from penstock.planning.statistics import Statistics
from penstock.planning.storage import TUPLES
from penstock.planning.two_layer import third_layer, two_layer
from penstock.planning.unit_costs import PAPER_NESTED_LOOPS, UnitCosts
from penstock.planning.verdict import Choice, Refusal, is_qualified


def _limits_at(cost_of: Cost, slack: float) -> Limits:
    return Limits(cpu=cost_of.cpu * slack, memory=int(cost_of.memory * slack) + 1)


# -- first layer -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_probe_orders_are_the_cheapest_of_all(seed: int) -> None:
    """Every permutation from every input, priced by the slow twin."""
    problem = random_problem(random.Random(seed), 5, storage=TUPLES)
    world = World(
        dict(problem.statistics.rates),
        {s.alias: s.window.span / 1000 for s in problem.query.streams if s.window.span},
        {frozenset(p): v for p, v in problem.statistics.selectivities.items()},
        problem.costs,
        False,
    )
    found = mjoin_ordering(problem).cost
    by_hand = cost(frozenset(NAMES[:5]), world)
    assert found.cpu - problem.fixed.cpu == pytest.approx(by_hand[0])
    assert found.memory == pytest.approx(by_hand[1])


@pytest.mark.parametrize("seed", range(10))
def test_greedy_orders_cost_what_they_say_and_little_more_than_exact_ones(seed: int) -> None:
    """Beyond the exact limit; compared with it by letting the exact program run on more."""
    problem = random_problem(random.Random(seed), EXACT + 1)
    parts = tuple(1 << i for i in range(EXACT + 1))
    greedy = probe_orders(problem.blocks[0], parts)
    from penstock.planning import probe_orders as module

    exact = module._exact(problem.blocks[0], parts)
    assert exact.cpu <= greedy.cpu * (1 + 1e-9)
    assert greedy.cpu <= 1.5 * exact.cpu
    again = _priced_by_hand(problem, parts, greedy.orders)
    assert greedy.cpu == pytest.approx(again)


def test_greedy_orders_know_classes_and_observations() -> None:
    names = NAMES[: EXACT + 2]
    query = penstock.parse(
        f"SELECT A.id FROM {', '.join(f'{n} [RANGE 5 SECONDS]' for n in names)} WHERE "
        + " AND ".join(f"A.k = {n}.k" for n in names[1:]),
        schemas=dict.fromkeys(names, _schema()),
    )
    chance = random.Random(3)
    shares = {("A", n): chance.uniform(0.001, 0.2) for n in names[1:]}
    statistics = Statistics(
        {n: chance.uniform(1, 10) for n in names}, shares, observed={("A", "B", "C"): 0.5}
    )
    problem = Problem(query, statistics)
    parts = tuple(1 << i for i in range(len(names)))
    greedy = probe_orders(problem.blocks[0], parts)
    assert greedy.cpu == pytest.approx(_priced_by_hand(problem, parts, greedy.orders))


def _schema() -> object:
    import pyarrow as pa

    return pa.schema([("ts", pa.int64()), ("id", pa.int64()), ("k", pa.int64())])


def _priced_by_hand(
    problem: Problem, parts: tuple[int, ...], orders: tuple[tuple[int, ...], ...]
) -> float:
    block = problem.blocks[0]
    total = 0.0
    for start, order in enumerate(orders):
        here = parts[start]
        for position in order:
            there = parts[position]
            look = (
                block.costs.probe
                if block.is_hashed(here, there)
                else block.cardinality.size(there) * block.costs.compare
            )
            spent = block.cardinality.size(here) * look
            here |= there
            spent += block.cardinality.size(here) * block.costs.join
            total += block.cardinality.turnover(parts[start]) * spent
    return total


@pytest.mark.parametrize("seed", range(15))
def test_the_best_binary_tree_is_found(seed: int) -> None:
    problem = random_problem(random.Random(seed), 3 + seed % 3, storage=TUPLES)
    everything = jtree_finder(problem, Limits(), keep="all")
    binary = [c for c in everything if all(len(node.inputs) == 2 for node in joins_of(c.shapes[0]))]
    assert bjtree_ordering(problem).cost.cpu == pytest.approx(min(c.cost.cpu for c in binary))


@pytest.mark.parametrize("seed", range(6))
def test_binary_trees_over_many_streams(seed: int) -> None:
    problem = random_problem(random.Random(seed), 12)
    found = bjtree_ordering(problem)
    plan = problem.plan_of(found)
    plan.check(problem.query)
    assert all(len(n.inputs) == 2 for n in walk(plan.root) if isinstance(n, Join))
    left_deep = join((leaf(0), leaf(1)))
    for i in range(2, 12):
        left_deep = join((left_deep, leaf(i)))
    assert found.cost.cpu <= problem.evaluate([left_deep]).cost.cpu


# -- qualified plans ---------------------------------------------------------------------------


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("seed", range(8))
def test_a_choice_is_within_the_limits_and_a_refusal_is_not(planner: str, seed: int) -> None:
    chance = random.Random(seed)
    problem = random_problem(chance, 3 + seed % 4)
    front = jtree_finder(problem, Limits())
    limits = _limits_at(chance.choice(front).cost, chance.choice([0.8, 1.001, 1.3]))
    verdict = decide(problem, limits, planner)
    if isinstance(verdict, Choice):
        plan = problem.plan_of(verdict.candidate)
        plan.check(problem.query)
        priced = problem.price(plan)
        assert is_qualified(priced, limits)
        assert priced == pytest.approx(verdict.candidate.cost)
        assert verdict.why
    else:
        assert not is_qualified(verdict.nearest.cost, limits)
        assert verdict.exceeded
        assert verdict.in_words()
        if verdict.proven:
            assert jtree_finder(problem, limits) == []


@pytest.mark.parametrize("seed", range(40))
def test_two_layer_finds_a_plan_whenever_there_is_one(seed: int) -> None:
    """Limits at a plan of the front: hardly another plan meets them."""
    chance = random.Random(seed)
    problem = random_problem(chance, 3 + seed % 4)
    limits = _limits_at(chance.choice(jtree_finder(problem, Limits())).cost, 1.0001)
    assert isinstance(two_layer(problem, limits), Choice)


@pytest.mark.parametrize("seed", range(10))
def test_the_third_layer_alone_finds_nearly_all(seed: int) -> None:
    """Regrouping without JTree-Finder, from the two ends, with limits at a plan of the front."""
    chance = random.Random(seed)
    problem = random_problem(chance, 6)
    front = jtree_finder(problem, Limits())
    limits = _limits_at(front[len(front) // 2].cost, 1.05)
    starts = [mjoin_ordering(problem), bjtree_ordering(problem)]
    memory: dict[object, object] = {}
    found = [regroup(problem, limits, start, memory) for start in starts]  # type: ignore[arg-type]
    assert any(is_qualified(candidate.cost, limits) for candidate in found)
    assert isinstance(third_layer(problem, limits, starts), Choice)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_limit_on_cpu_the_least_is_found(seed: int) -> None:
    problem = random_problem(random.Random(seed), 5)
    front = jtree_finder(problem, Limits())
    verdict = two_layer(problem, Limits())
    assert isinstance(verdict, Choice)
    assert verdict.candidate.cost.cpu == pytest.approx(front[0].cost.cpu)
    middle = front[len(front) // 2].cost
    within = two_layer(problem, Limits(memory=int(middle.memory) + 1))
    assert isinstance(within, Choice)
    assert within.candidate.cost.cpu == pytest.approx(middle.cpu)


@pytest.mark.parametrize("seed", range(4))
def test_many_streams(seed: int) -> None:
    problem = random_problem(random.Random(seed), 20)
    mjoin_cost, tree_cost = mjoin_ordering(problem).cost, bjtree_ordering(problem).cost
    limits = Limits(
        cpu=(mjoin_cost.cpu * tree_cost.cpu) ** 0.5,
        memory=int((mjoin_cost.memory * tree_cost.memory) ** 0.5),
    )
    for planner in ("two-layer", "state-selection", "state-removal", "mjoin", "bjtree"):
        verdict = decide(problem, limits, planner)
        candidate = verdict.candidate if isinstance(verdict, Choice) else verdict.nearest
        problem.plan_of(candidate).check(problem.query)
    unlimited = two_layer(problem, Limits())
    assert isinstance(unlimited, Choice)
    assert unlimited.candidate.cost.cpu <= min(mjoin_cost.cpu, tree_cost.cpu)


def test_bounds_are_below_every_plan() -> None:
    for seed in range(20):
        problem = random_problem(random.Random(seed), 4, cross_products=seed % 2 == 0)
        block = problem.blocks[0]
        for candidate in jtree_finder(problem, Limits(), keep="all"):
            assert candidate.cost.cpu >= problem.fixed.cpu + least_cpu(block)
            assert candidate.cost.memory >= problem.fixed.memory + least_memory(block)


# -- hill climbers -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_state_selection_saves_cpu_at_every_step(seed: int) -> None:
    problem = random_problem(random.Random(seed), 6)
    trail = state_selection(problem, Limits(cpu=1e-12), mjoin_ordering(problem))
    for before, after in itertools.pairwise(trail):
        assert after.cost.cpu < before.cost.cpu
    limits = Limits(cpu=1e-12, memory=int(trail[0].cost.memory * 1.01) + 1)
    assert limits.memory is not None
    for candidate in state_selection(problem, limits, mjoin_ordering(problem)):
        assert candidate.cost.memory <= limits.memory


@pytest.mark.parametrize("seed", range(10))
def test_state_removal_ends_with_the_mjoin(seed: int) -> None:
    problem = random_problem(random.Random(seed), 6)
    trail = state_removal(problem, Limits(memory=1), bjtree_ordering(problem))
    stored = [len(list(joins_of(candidate.shapes[0]))) for candidate in trail]
    assert stored == [5, 4, 3, 2, 1]
    assert trail[-1] == mjoin_ordering(problem)


def test_operators_are_merged_where_that_saves_both() -> None:
    """Optimize: where keeping is dear and recomputing cheap, one mjoin makes the merged vertex."""
    costs = UnitCosts.of_paper(insert=1e-3, delete=1e-3, join=1e-9)
    query = join_query("ABCDE", [("A", "B"), ("B", "C"), ("C", "D"), ("D", "E")])
    shares = {("A", "B"): 0.01, ("B", "C"): 0.01, ("C", "D"): 0.9, ("D", "E"): 0.9}
    problem = Problem(query, Statistics(dict.fromkeys("ABCDE", 10), shares), costs, TUPLES)
    from penstock.planning import state_selection as module

    pair = join((leaf(0), leaf(1)))
    merged = module._optimized(problem.blocks[0], pair, leaf(2))
    assert merged == mjoin(0b111)
    dear = Problem(query, problem.statistics, UnitCosts.of_paper(1e-9, 1e-9, join=1e-3), TUPLES)
    assert module._optimized(dear.blocks[0], pair, leaf(2)) == join((pair, leaf(2)))


def test_shapes() -> None:
    tree = join((join((leaf(0), leaf(1))), join((leaf(2), leaf(3)))))
    assert merge(tree, 0b0011) == join((leaf(0), leaf(1), join((leaf(2), leaf(3)))))
    assert merge(merge(tree, 0b0011), 0b1100) == mjoin(0b1111)
    assert [node.mask for node in joins_of(tree)] == [0b0011, 0b1100, 0b1111]


# -- blocks, cross products, errors ------------------------------------------------------------


def test_except_is_planned_within_one_limit() -> None:
    names = ("A", "B", "C", "D", "E", "F")
    schema = join_query("ABC", [("A", "B"), ("B", "C")]).streams[0].schema
    query = penstock.parse(
        """SELECT A.id FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS], C [RANGE 9 SECONDS]
           WHERE A.ab = B.ab AND B.bc = C.bc EXCEPT
           SELECT D.id FROM D [RANGE 9 SECONDS], E [RANGE 9 SECONDS], F [RANGE 9 SECONDS]
           WHERE D.ab = E.ab AND E.bc = F.bc""",
        schemas=dict.fromkeys(names, schema),
    )
    shares = {("A", "B"): 0.02, ("B", "C"): 0.3, ("D", "E"): 0.02, ("E", "F"): 0.3}
    problem = Problem(query, Statistics(dict.fromkeys(names, 20), shares))
    front = jtree_finder(problem, Limits())
    assert len(front) > 2
    # Between the ends, one block stores a state and the other does not.
    for candidate in front:
        limits = _limits_at(candidate.cost, 1.0001)
        verdict = two_layer(problem, limits)
        assert isinstance(verdict, Choice)
        plan = problem.plan_of(verdict.candidate)
        assert len(plan.minus) == 1
        plan.check(query)


def _cross_products(node: Node, pairs: set[frozenset[str]]) -> int:
    """Joins, and steps of probe orders, whose two sides no predicate links."""
    found = 0
    for each in walk(node):
        if isinstance(each, Leaf):
            continue
        orders = each.orders or ((1,), (0,))
        for start, order in enumerate(orders):
            together = set(each.inputs[start].streams)
            for position in order:
                there = each.inputs[position].streams
                found += not any(frozenset((a, b)) in pairs for a in together for b in there)
                together |= there
    return found


@pytest.mark.parametrize("seed", range(12))
def test_cross_products_only_when_needed(seed: int) -> None:
    problem = random_problem(random.Random(seed), 4 + seed % 8)
    pairs = {frozenset(pair) for pair in problem.statistics.selectivities}
    for planner in ("two-layer", "mjoin", "bjtree", "state-selection", "state-removal"):
        verdict = decide(problem, Limits(), planner)
        assert isinstance(verdict, Choice)
        assert _cross_products(problem.plan_of(verdict.candidate).root, pairs) == 0, planner


@pytest.mark.parametrize("planner", PLANNERS)
def test_a_query_that_falls_apart_has_a_plan(planner: str) -> None:
    query = join_query("ABCD", [("A", "B"), ("C", "D")])
    statistics = Statistics(dict.fromkeys("ABCD", 5), {("A", "B"): 0.01, ("C", "D"): 0.01})
    plan = penstock.plan(query, statistics, planner=planner)
    plan.check(query)


def test_one_stream_needs_no_join() -> None:
    query = join_query("A", [])
    for planner in PLANNERS:
        assert penstock.plan(query, Statistics({"A": 5}), planner=planner) == Plan(Leaf("A"))


# -- the paper's settings ----------------------------------------------------------------------


def test_set_2_with_nested_loops_qualifies_the_tree_alone() -> None:
    """Table 2, set 2 with the costs of Table 3: 0.62 against 5.4 seconds of CPU per second."""
    query = join_query("ABC", [("A", "B"), ("B", "C")], "RANGE 15 SECONDS")
    statistics = Statistics({"A": 20, "B": 20, "C": 50}, {("A", "B"): 0.02, ("B", "C"): 0.5})
    problem = Problem(query, statistics, PAPER_NESTED_LOOPS, TUPLES, join="nested-loops")
    assert problem.price(read("((A B) C)")).cpu == pytest.approx(0.62, abs=0.01)
    assert mjoin_ordering(problem).cost.cpu == pytest.approx(5.4, abs=0.05)
    verdict = two_layer(problem, Limits(cpu=1.0))
    assert isinstance(verdict, Choice)
    assert str(problem.plan_of(verdict.candidate)) == "((A B) C)"


def test_a_tree_dearer_than_any_mjoin_is_no_reason_to_refuse() -> None:
    """Algorithm 2 gives up when the best tree needs too much CPU; a mixed plan may need less."""
    costs = UnitCosts.of_paper(insert=1e-4, delete=1e-4, join=1e-6)
    problem = paper_example({"A": 20, "B": 20, "C": 20}, 0.05, 0.05, 5, costs)
    mjoin_cost, tree_cost = mjoin_ordering(problem).cost, bjtree_ordering(problem).cost
    assert mjoin_cost.cpu < tree_cost.cpu
    assert isinstance(two_layer(problem, Limits(cpu=mjoin_cost.cpu * 1.01)), Choice)


# -- the public function -----------------------------------------------------------------------


def _small() -> tuple[penstock.JoinGraph, penstock.Statistics]:
    query = join_query("ABC", [("A", "B"), ("B", "C")])
    return query, Statistics({"A": 20, "B": 20, "C": 20}, {("A", "B"): 0.05, ("B", "C"): 0.5})


def test_plan_is_a_plan_of_the_query() -> None:
    query, statistics = _small()
    for planner in PLANNERS:
        plan = penstock.plan(query, statistics, Limits(cpu=1.0, memory="1GiB"), planner=planner)
        assert isinstance(plan, penstock.Plan)
        plan.check(query)
        assert read(str(plan)) == plan


def test_the_refusal_says_why() -> None:
    query, statistics = _small()
    with pytest.raises(NoQualifiedPlan) as caught:
        penstock.plan(query, statistics, Limits(memory=100))
    error = caught.value
    assert error.exceeded == ("memory",)
    assert error.proven
    assert isinstance(error.nearest, Plan)
    assert error.memory > 100
    assert "windows alone need more memory" in str(error)
    assert "against a limit of 100 B" in str(error)
    assert str(error.nearest) in str(error)
    with pytest.raises(NoQualifiedPlan) as caught:
        penstock.plan(query, statistics, Limits(cpu=1e-9, memory="1TiB"))
    assert caught.value.exceeded == ("cpu",)
    assert "of a core against a limit of under 0.001" in str(caught.value)


def test_mistakes_are_told() -> None:
    query, statistics = _small()
    with pytest.raises(OptionError, match="choose from: 'two-layer', 'jtree-finder'"):
        penstock.plan(query, statistics, planner="best")
    with pytest.raises(OptionError, match="statistics is a Statistics, not dict"):
        penstock.plan(query, {"A": 1})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="limits is a Limits, not int"):
        penstock.plan(query, statistics, 5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="join='merge' does not exist"):
        penstock.plan(query, statistics, join="merge")
    many = random_problem(random.Random(1), 12)
    with pytest.raises(OptionError, match="12 streams are more than 10"):
        decide(many, Limits(), "jtree-finder")


def test_all_jtrees_agree_with_the_twin_on_connected_sets() -> None:
    """A chain of four has 26 trees in all; these without cross products."""
    problem = Problem(
        join_query("ABCD", [("A", "B"), ("B", "C"), ("C", "D")]),
        Statistics(dict.fromkeys("ABCD", 5), {("A", "B"): 0.1, ("B", "C"): 0.1, ("C", "D"): 0.1}),
    )
    world = World(
        dict.fromkeys("ABCD", 5.0),
        dict.fromkeys("ABCD", 10.0),
        {frozenset(p): 0.1 for p in ("AB", "BC", "CD")},
        problem.costs,
        False,
    )
    expected = len(list(all_trees(list("ABCD"), world)))
    assert expected == 11
    assert len(jtree_finder(problem, Limits(), keep="all")) == expected


def test_a_refusal_of_a_planner_names_its_nearest_plan() -> None:
    problem = random_problem(random.Random(5), 5)
    front = jtree_finder(problem, Limits())
    limits = Limits(cpu=front[0].cost.cpu * 0.99, memory=int(front[-1].cost.memory * 10))
    verdict = decide(problem, limits, "jtree-finder")
    assert isinstance(verdict, Refusal)
    assert verdict.nearest.cost == front[0].cost

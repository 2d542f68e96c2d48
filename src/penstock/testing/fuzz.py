"""Compiled against reference against oracle, with everything switched on at random.

A case is a random query with random rows and pushes (:func:`penstock.testing.generators.generate`)
and a random way to run it: plan, feedback, a budget, a host's clock; between pushes guards that
are switched on and off, changes of plan, eddies that review their routes, restarts from a
checkpoint, and pushes that fail (at their end, while a state grows, by a signal) and are made
again; a limit on memory so small that most rows are on disk, and a disk that has no room now and
then. Two engines go through the same: one
whose pushes are compiled wherever they can be, and one that goes step by step. Each must give the
oracle's answer in every push, and both must count the same rows as late, and in the end the same
rows as tested, put to sleep and woken at every guard: one that is not asked loses no result, only
what it is there for. Two cases of three have only what is mostly compiled.

In one case of six, and in most of the large ones, all but the smallest pushes are large for the
compiled way: it takes them in part by part. One case of four has what few ask for: FRESHNESS that
is shorter than pushes are, static relations that are replaced, and a limit on results, by which
both engines must refuse the same pushes; the oracle never hears of these.

In one case of six the budget is really short now and then, in half of these with rows left at the
door and with choices by rank. What then leaves is no more than the oracle's answer, and under
``defer``, with FRESHNESS that is long enough, all of it has left in the end: nothing is lost on the
way into the compiled push and out of it. Groups are not among them: of fewer rows they are others.

Small cases let faults through that show only when rings wrap, grow and are packed. So some cases
are large: thousands of rows per stream, which a brute-force oracle cannot do; there the two engines
are compared with a third in every push, which goes step by step without feedback, and what has left
in the end with DuckDB, where it is installed and the query can be said in its SQL. In some of these
the rows of a stream come in waves, for which hundreds have waited. One case of ten is like these,
but smaller, with a stream that others are compared with by ``<`` and the like alone, so that they
wait for it to reach far enough.
"""

from __future__ import annotations

import errno
import importlib.util
import itertools
import os
import random
import re
import signal
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import penstock
from penstock.errors import TooManyResults
from penstock.plan.plan import EDDIES
from penstock.query.join_graph import JoinGraph
from penstock.query.window import Unbounded
from penstock.testing.case import Case
from penstock.testing.compare import (
    assert_same_rows,
    difference,
    difference_in_counts,
    rows_of,
    surplus,
)
from penstock.testing.duckdb_oracle import NotTranslatable, duckdb_answer
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.large_case import large_case, ranged_case
from penstock.testing.oracle import Oracle
from penstock.testing.python_values import canonical
from penstock.testing.random_plan import random_plan

COMPILED = FEATURES - {"arrival", "no event time", "except"}
"""What is no reason for a query to go the reference way."""
BY_DUCKDB = "(in cases that DuckDB has checked)"
"""The name under which :func:`fuzz_large` counts pushes that DuckDB has checked, too."""
_RANGED_EVERY = 10
"""One case of so many is such a case."""
_SHORT_EVERY = 6
"""One case of so many has a budget that is short."""
_CHOICE_EVERY = 12
"""One case of so many has such a budget, rows that are left at the door, and choices by rank."""
_PARTS_EVERY = 6
"""One case of so many has pushes that are large for the compiled way."""
_RARE_EVERY = 4
"""One case of so many has what few ask for."""
_RANGE = re.compile(r"(\[(?:RANGE (?!UNBOUNDED)[^]]*|NOW)\])")
_LENGTH = re.compile(r"\[RANGE (\d+) (\w+)\]")
_STRATEGIES = ("jisc", "moving-state", "parallel-track")
_AT_ONCE_EVERY = 4
"""Every so many seeds JISC is left to ``auto``, with a budget that all fits in: what depends on a
clock would differ between two engines."""
_EDDIES_EVERY = 5
"""Every so many seeds most plans are eddies, whose routes are reviewed, held and undone."""
_IN_MEMORY = "/dev/shm"
"""A folder whose files are in memory, on Linux."""
_TICK = 1e-4
"""Seconds between two looks of a budget at its clock."""
_LONG_HALT = 3_600_000
"""Milliseconds that nothing takes."""


class Sabotage(Exception):  # noqa: N818 - what happened
    """A push that was made to fail."""


def fuzz(cases: int, seed: int = 0, large_every: int = 50) -> Iterator[tuple[int, dict[str, int]]]:
    """Run ``cases`` from ``seed`` on; of each, its seed and how many pushes went which way.

    Every ``large_every``-th case is large. AssertionError tells the seed of a case that differs, a
    note that of any other problem.
    """
    for each in range(seed, seed + cases):
        is_large = large_every > 0 and each % large_every == large_every - 1
        try:
            ways = fuzz_large(each) if is_large else fuzz_case(each)
        except Exception as problem:
            problem.add_note(f"seed {each}")
            raise
        yield each, ways


def fuzz_case(seed: int) -> dict[str, int]:
    """Run one small case; how many pushes of the first engine went which way."""
    if seed % _RANGED_EVERY == 3:
        return _compare(seed, ranged_case(random.Random(seed)))
    chance = random.Random(seed)
    is_any = seed % 3 == 0 or seed % _CHOICE_EVERY == _SHORT_EVERY + 1
    case = generate(seed, Knobs() if is_any else Knobs(COMPILED, streams=(2, 4)))
    graph = case.graph()
    if seed % _SHORT_EVERY == 1 and not graph.is_grouped:
        return _fuzz_short(chance, case, seed)
    rare = random.Random(seed) if seed % _RARE_EVERY == 2 else None
    if rare is not None:
        case = _with_freshness(rare, case)
        graph = case.graph()
    oracle = Oracle(graph, case.lateness)
    options = _options(chance, by_rows=graph.by_rows)
    if seed % _AT_ONCE_EVERY == _AT_ONCE_EVERY - 1:
        options["max_halt"] = _LONG_HALT
    if rare is not None and rare.random() < 0.5 and options["overload"] != "defer":
        options["max_results"] = rare.choice([1, 4, 20])
    part_rows = 1 + seed % 5 if seed % _PARTS_EVERY == _PARTS_EVERY - 1 else None
    runs = _runs(case, graph, options, part_rows)
    for number, batches in enumerate(case.pushes):
        do = _between(chance, graph, seed)
        if rare is not None and number:
            do += _refreshed(rare, case, graph)
        answers = []
        for run in runs:
            run.do(do)
            told = run.told(chance.random())
            answers.append(run.push_unless_refused(batches, case.watermark(number), told))
        for relations in (value for name, value in do if name == "refresh"):
            oracle.refresh(relations)
        context = _Context(seed, runs[0], f"push {number}", options, case)
        if None in answers:
            assert answers == [None] * len(runs), f"{context}\none refuses the push"
            continue
        expected = oracle.push(batches, case.watermark(number))
        for run, answer in zip(runs, answers, strict=True):
            context = _Context(seed, run, f"push {number}", options, case)
            assert_same_rows(answer, expected, graph, instants=oracle.instants, context=context)
            sources = run.engine.metrics()["sources"]
            late = {name: each["late"] for name, each in sources.items()}
            assert late == oracle.late, context
    expected = oracle.finish()
    for run in runs:
        context = _Context(seed, run, "finish", options, case)
        answer = run.engine.finish()
        assert_same_rows(answer, expected, graph, instants=oracle.instants, context=context)
    asked = [run.guard_counts() for run in runs]
    are_alike = part_rows is None  # Else rows sleep that have a partner in a later part.
    are_alike &= runs[0].guards_on() == runs[1].guards_on() and runs[0].plans() == runs[1].plans()
    assert not are_alike or _did_the_same(*asked), (
        f"seed {seed}, guards: {asked[0]}\nand {asked[1]}, {options}\n{case}"
    )
    return runs[0].ways()


class _Context(NamedTuple):
    """What tells a failure from others: made for every push, and written out only if it fails."""

    seed: int
    run: _Run
    step: str
    options: dict[str, Any]
    case: Case

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.run}, {self.step}, {self.options}\n{self.case}"


def _did_the_same(compiled: list[tuple[Any, ...]], reference: list[tuple[Any, ...]]) -> bool:
    """Whether guards did the same with all rows that lived.

    Where a row dies in the push in which somebody comes for whom it has waited, the reference wakes
    it, and asks other guards about it; the compiled push has let go of it by then. And combinations
    that have never lived are what rows have waited for, in one way and not in the other: of those
    who wait for combinations, nothing can be told.
    """
    woken: dict[str, int] = {}
    unsure = {each[0] for each in (*compiled, *reference) if "," in each[1]}
    for one, other in zip(compiled, reference, strict=True):
        woken[one[0]] = woken.get(one[0], 0) + other[3] - one[3]
    for one, other in zip(compiled, reference, strict=True):
        if one[0] in unsure and one[:2] == other[:2]:
            continue
        more = [theirs - own for own, theirs in zip(one[2:], other[2:], strict=True)]
        if one[:2] != other[:2] or min(more) < 0 or max(more) > woken[one[0]]:
            return False
    return True


def _with_freshness(chance: random.Random, case: Case) -> Case:
    """``case`` with windows whose rows are too old for results soon after they are gone."""

    def fresh(window: re.Match[str]) -> str:
        length = int(window[1]) * chance.choice([1, 1, 2])
        return f"{window[0]} FRESHNESS {length} {window[2]}" if chance.random() < 0.5 else window[0]

    if chance.random() < 0.5 or "EXCEPT" in case.text:
        return case
    return replace(case, text=_LENGTH.sub(fresh, case.text))


def _refreshed(chance: random.Random, case: Case, graph: JoinGraph) -> list[tuple[str, Any]]:
    """Now and then, other rows for a static relation of ``case``."""
    statics = [stream.source for stream in graph.streams if stream.is_static]
    if not statics or graph.minus or graph.is_grouped or chance.random() < 0.5:
        return []
    name = chance.choice(statics)
    rows = pa.concat_tables(
        [case.schemas[name].empty_table()] + [each[name] for each in case.pushes if name in each]
    )
    places = [chance.randrange(len(rows)) for _ in range(chance.randint(0, len(rows)))]
    return [("refresh", {name: rows.take(pa.array(places, pa.int64()))})]


def _fuzz_short(chance: random.Random, case: Case, seed: int) -> dict[str, int]:
    """Run a case whose budget is short now and then."""
    policies: list[Literal["shed", "defer"]] = ["shed", "defer", "defer"]
    policy = chance.choice(policies)
    if case.graph().minus and not case.lateness:
        policy = "shed"  # What comes late is judged by those who are left to remove it.
    if policy == "defer":
        case = replace(case, text=_RANGE.sub(r"\1 FRESHNESS 30000 DAYS", case.text))
    graph = case.graph()
    oracle = Oracle(graph, case.lateness)
    options = _options(chance, by_rows=graph.by_rows)
    held = chance.choice([None, None, 2_000, 20_000])
    limits = None if held is None else penstock.Limits(memory=held, disk=chance.choice([0, None]))
    overload = penstock.Overload(policy, probes=1e12)
    if seed % _CHOICE_EVERY == _SHORT_EVERY + 1:
        overload = _choosing(chance, overload)
    options |= {"limits": limits, "overload": overload}
    runs = _runs(case, graph, options)
    due: list[Any] = []
    left: dict[_Run, list[Any]] = {run: [] for run in runs}
    budgets = [None, None, 0.0, 3.0, 20.0]
    at_once = policy == "shed" or graph.emission == "rstream"
    for number, batches in enumerate(case.pushes):
        expected = oracle.push(batches, case.watermark(number))
        due += expected
        do, probes = _between(chance, graph, seed), chance.choice(budgets)
        if overload.cpu is not None:
            probes = None
            if chance.random() < 0.3:
                do.append(("door", chance.uniform(0.2, 0.9)))
        for run in runs:
            run.do(do)
            told = run.told(chance.random())
            answer = rows_of(run.push(batches, case.watermark(number), told, probes))
            left[run] += answer
            found = surplus(answer, expected) if at_once else surplus(left[run], due)
            assert found is None, f"seed {seed}, {run}, push {number}, {options}\n{case}\n{found}"
    due += oracle.finish()
    for run in runs:
        left[run] += rows_of(run.engine.finish())
        account = run.engine.metrics()["overload"]
        is_whole = policy == "defer" and graph.emission != "rstream"
        is_whole &= not graph.by_rows  # No FRESHNESS there: what is late may be lost.
        if "lost" in account:  # Joins have a budget, a stream alone has none.
            is_whole &= account["forgotten"] == account["stale"] == account["lost"]["results"] == 0
        found = difference(left[run], due) if is_whole else surplus(left[run], due)
        assert found is None, f"seed {seed}, {run}, finish, {options}\n{case}\n{found}"
    return runs[0].ways()


def _choosing(chance: random.Random, overload: penstock.Overload) -> penstock.Overload:
    """The same with probes for some rows before others, and perhaps a share of a core."""
    choices: list[Literal["random", "newest", "correlated"]] = ["random", "newest", "correlated"]
    overload = replace(overload, choice=chance.choice(choices), seed=chance.randrange(1 << 30))
    if overload.policy == "defer":
        return overload
    allocator = "random-shedding" if chance.random() < 0.3 else overload.allocator
    share = 10.0 ** -chance.randint(1, 6)
    return replace(overload, probes=None, cpu=share, allocator=allocator)


def _runs(
    case: Case, graph: Any, options: dict[str, Any], part_rows: int | None = None
) -> list[_Run]:
    """An engine of each kind. If ``part_rows`` are given, pushes of more are large."""
    given = options | {"lateness": case.lateness}
    return [
        _Run(penstock.Engine(graph, case.plan, execution=way, **given), part_rows)
        for way in ("auto", "reference")
    ]


def fuzz_large(seed: int) -> dict[str, int]:
    """Run one large case."""
    return _compare(seed, large_case(random.Random(seed)))


def _compare(seed: int, case: Case) -> dict[str, int]:
    """Run a case on both engines, and on one without feedback; and on DuckDB, if it can be."""
    chance = random.Random(seed + 1)
    graph = case.graph()
    options = _options(chance, by_rows=graph.by_rows)
    part_rows = random.Random(seed).choice([None, 64, 1_000])
    runs = _runs(case, graph, options, part_rows)
    runs.append(_runs(case, graph, {**options, "feedback": "off"})[1])
    left: Counter[Hashable] = Counter()
    for number, batches in enumerate([*case.pushes, None]):
        do = [] if batches is None else _between(chance, graph, seed)
        answers = []
        for run in runs:
            run.do(do)
            answer = run.engine.finish() if batches is None else run.push(batches)
            answers.append(rows_of(answer))
        for run, rows in zip(runs, answers[:-1], strict=False):
            found = difference(rows, answers[-1])
            context = f"seed {seed} (large), {run}, push {number}, {options}\n{case.text}"
            assert found is None, f"{context}\n{case.plan}\n{found}"
        left.update(map(canonical, answers[-1]))
    late = [run.engine.metrics()["late"] for run in runs]
    assert len(set(late)) == 1, f"seed {seed} (large): late {late}"
    ways = runs[0].ways()
    expected = _by_duckdb(case, graph)
    if expected is not None:
        found = difference_in_counts(left, expected)
        assert found is None, f"seed {seed} (large), DuckDB\n{case.text}\n{found}"
        ways[BY_DUCKDB] = len(case.pushes)
    return ways


def _by_duckdb(case: Case, graph: JoinGraph) -> Counter[Hashable] | None:
    """The whole answer to ``case`` as DuckDB has it; None if it cannot be asked. Rows that the
    oracle calls late are left out before."""
    if importlib.util.find_spec("duckdb") is None:
        return None
    oracle = Oracle(graph, case.lateness)
    for batches in case.pushes:
        oracle.see(batches)
    tables = {}
    for source, arrived in oracle.arrived.items():
        whole = pa.concat_tables([batches[source] for batches in case.pushes])
        on_time = pa.array([each.values["id"] for each in arrived], pa.int64())
        tables[source] = whole.filter(pc.is_in(whole.column("id"), on_time))
    try:
        return duckdb_answer(graph, [tables])
    except NotTranslatable:
        return None


class _Run:
    """An engine, and what was done to it."""

    def __init__(self, engine: penstock.Engine, part_rows: int | None = None) -> None:
        self._part_rows = part_rows
        self.engine = self._prepared(engine)
        self._done: list[str] = []
        self._failing = ""
        """How the next push fails, if it is to."""

    def __str__(self) -> str:
        return f"{self.engine.options.execution} after {', '.join(self._done) or 'nothing'}"

    def _prepared(self, engine: penstock.Engine) -> penstock.Engine:
        """The engine, which moves even the smallest window to files if it may. They are in memory
        where that can be had: to wait for a disk takes longer than all the rest of a case. What it
        measures of its work follows from its calls and from no clock: a case can be repeated."""
        if engine._join.overload is not None:
            budget = engine._join.overload.budget
            budget._cost_time = budget._wall_time = partial(next, itertools.count(0.0, _TICK))
        spilling = engine._join.spilling
        if spilling is not None:
            spilling.least_bytes = 0
            spilling.pushes_after_refusal = 2
            if os.access(_IN_MEMORY, os.W_OK):
                spilling.files._folder = _IN_MEMORY
        if self._part_rows is not None and engine._join.whole is not None:
            engine._join.whole.most_rows = engine._join.whole.part_rows = self._part_rows
        return engine

    def do(self, what: list[tuple[str, Any]]) -> None:
        """Do to the engine what was drawn, before a push."""
        for name, value in what:
            self._done.append(name)
            if name == "restart":
                blob = self.engine.checkpoint()
                restored = penstock.Engine.restore(self.engine.query, blob, plan=value)
                self.engine = self._prepared(restored)
            elif name == "fail":
                self._failing = value
            elif name == "switch":
                self._switch_guards(random.Random(value))
            elif name == "surpassed":
                self.engine._join.expiry.drop_surpassed()
            elif name == "review":
                self._review(value)
            elif name == "undo":
                if self.engine.history:
                    self.engine.undo()
            elif name == "hold":
                self.engine.unpin() if self.engine.is_pinned else self.engine.pin()
            elif name == "refresh":
                self.engine.refresh(value)
            elif name == "door":
                self._open_door(value)
            elif name == "put back":
                for tree in self.engine.trees:
                    tree.put_back(partial(_draw, random.Random(value), 0.8))
            else:
                is_auto = name == "jisc" and self.engine.options.max_halt is not None
                self.engine.migrate(value, strategy="auto" if is_auto else name)

    def _switch_guards(self, chance: random.Random) -> None:
        for tree in self.engine.trees:
            tree.switch_guards(lambda: chance.random() < 0.4, chance.choice(["index", "bloom"]))

    def _review(self, gain: float) -> None:
        """Let the eddy, if there is one, review its routes after the next push."""
        eddy = self.engine._changes.eddy
        if eddy is not None:
            eddy.due, eddy.gain = 0, gain

    def _open_door(self, length: float) -> None:
        """Take in rows with a part of the keys from the next push on, if rows may be left out."""
        control = self.engine._join.overload
        if control is not None and control.door.streams:
            control.door.open_by_key(length)

    def push_unless_refused(self, batches: Any, *given: Any) -> pa.Table | None:
        """The answer of a push; None if it would make too many results."""
        try:
            return self.push(batches, *given)
        except TooManyResults:
            return None

    def push(self, batches: Any, *given: Any) -> pa.Table:
        """The answer of a push, which fails first if it is to."""
        failing, self._failing = self._failing, ""
        if failing:
            sabotaged, name, instead = self._sabotage(failing)
            vars(sabotaged)[name] = instead
            try:
                return self.engine.push(batches, *given)  # Then there was nothing in its way.
            except (Sabotage, MemoryError, KeyboardInterrupt):
                pass
            finally:
                del vars(sabotaged)[name]
            assert self.engine.metrics() is not None
        return self.engine.push(batches, *given)

    def _sabotage(self, failing: str) -> tuple[Any, str, Any]:
        """An object, its method, and what it is to do instead."""
        states = self.engine.trees[0].states
        spilling = self.engine._join.spilling
        if failing == "disk" and spilling is not None:
            return spilling.files, "_mapped", _without_disk
        if failing == "room" and states:
            return states[0], "make_room", _without_memory
        output = self.engine._join.output

        def stage(*arguments: Any) -> Any:
            if failing == "signal" and threading.current_thread() is threading.main_thread():
                signal.raise_signal(signal.SIGINT)
                return type(output).stage(output, *arguments)
            type(output).stage(output, *arguments)
            raise Sabotage

        return output, "stage", stage

    def told(self, draw: float) -> dict[str, int] | None:
        """Now and then, what a host knows of the newest event times: what the engine knows."""
        return self.engine.newest if draw < 0.3 and not self.engine.query.by_rows else None

    def guard_counts(self) -> list[tuple[Any, ...]]:
        """What each guard did with how many rows.

        Combinations that never lived are tested in one way and left out before in the other, so for
        those it counts what became of them.
        """
        names = ("input", "waits_for", "slept", "resumed", "dropped")
        guards = self.engine.metrics()["feedback"]["guards"]
        return [
            (*(guard[name] for name in names), 0 if "," in guard["input"] else guard["tested"])
            for guard in guards
        ]

    def guards_on(self) -> list[bool]:
        """Whether each guard is on. A plan beside an older one, or one that lacks something, does
        not let them be switched, and when that ends depends on when dead rows are let go of."""
        return [guard["on"] for guard in self.engine.metrics()["feedback"]["guards"]]

    def plans(self) -> list[str]:
        """The plans that it had. An eddy goes by counts of probes, which may differ between the two
        ways as those of guards do."""
        return [change.plan for change in self.engine.history]

    def ways(self) -> dict[str, int]:
        """Pushes by the way they went."""
        execution = self.engine.metrics()["execution"]
        return {"compiled": execution["compiled"], **execution["reasons"]}


def _options(chance: random.Random, by_rows: bool) -> dict[str, Any]:
    feedback = chance.choice(
        [
            "off",
            "jit",
            "bloom",
            penstock.Feedback(adaptive=False),
            penstock.Feedback(adaptive=False, detection="bloom"),
            penstock.Feedback(adaptive=False, level=1),
        ]
    )
    limits = chance.choice(
        [
            None,
            penstock.Limits(cpu=1.0),
            penstock.Limits(probes=1e15),
            penstock.Limits(memory=1),
            penstock.Limits(memory=chance.choice([2_000, 20_000, 200_000])),
            penstock.Limits(memory=1, disk=chance.choice([0, 2_000, 20_000])),
        ]
    )
    overload = "exact"
    if limits is not None and limits.probes is not None:
        overload = chance.choice(["exact", "shed", "defer"])
    join = "nested-loops" if chance.random() < 0.1 else "hash"
    return {"feedback": feedback, "limits": limits, "overload": overload, "join": join}


def _between(chance: random.Random, graph: Any, seed: int) -> list[tuple[str, Any]]:
    """What is done to an engine before a push."""
    what = _done_to_any(chance, graph)
    if seed % _EDDIES_EVERY != _EDDIES_EVERY - 1:
        return what
    drawn = random.Random(chance.randrange(1 << 30))
    for place, (name, plan) in enumerate(what):
        if name in _STRATEGIES and drawn.random() < 0.8:
            tree = random_plan(drawn, list(graph.aliases))
            what[place] = (name, drawn.choice([*EDDIES, f"stairs {tree}", f"stairs-lazy {tree}"]))
        elif name == "restart" and plan is not None:
            what[place] = (name, drawn.choice([None, "auto", *EDDIES]))
    for name, value, share in (("review", 1.0, 0.5), ("undo", None, 0.1), ("hold", None, 0.1)):
        if drawn.random() < share:
            what.append((name, value))
    return what


def _done_to_any(chance: random.Random, graph: Any) -> list[tuple[str, Any]]:
    """What is done to an engine with any plan."""
    what: list[tuple[str, Any]] = []
    if chance.random() < 0.15:
        endless = any(isinstance(s.window, Unbounded) for b in graph.blocks for s in b.streams)
        strategies = [s for s in _STRATEGIES if not (endless and s == "parallel-track")]
        what.append((chance.choice(strategies), _any_plan(chance, graph)))
    if chance.random() < 0.1:
        plan = _any_plan(chance, graph) if chance.random() < 0.5 else None
        what.append(("restart", plan))
    if chance.random() < 0.3:
        what.append(("switch", chance.randrange(1 << 30)))
    if chance.random() < 0.4:
        what.append(("put back", chance.randrange(1 << 30)))
    if graph.ignores_copies and chance.random() < 0.7:
        what.append(("surpassed", None))
    if chance.random() < 0.15:
        what.append(("fail", chance.choice(["stage", "room", "signal", "disk"])))
    return what


def _any_plan(chance: random.Random, graph: JoinGraph) -> str:
    """A plan of the first block, or of all of them, with those after EXCEPT in any order."""
    plan = random_plan(chance, list(graph.aliases))
    others = random.Random(plan)
    if not graph.minus or others.random() < 0.4:
        return plan
    blocks = others.sample(graph.minus, len(graph.minus))
    return " - ".join([plan, *(random_plan(others, list(block.aliases)) for block in blocks)])


def _draw(chance: random.Random, share: float) -> bool:
    return chance.random() < share


def _without_memory(*_: Any) -> None:
    raise MemoryError


def _without_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")

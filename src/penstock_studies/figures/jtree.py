"""Figures 7, 8, 13 and 14 and Table 3 of JTree (Raghavan, Rundensteiner and others).

Figure 7 is set 1 (throughput, memory, queue), Figure 8 has sets 2 (throughput, queue), 3 and 4
(throughput, memory each), all over time. Figure 13 compares planners, Figure 14 the plans that two
of them find.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.planning.two_layer import STREAMS_PROVEN
from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.lab.chart import Chart, Panel, Series, series_by
from penstock_studies.lab.experiment import Cell, Experiment, Point, Row, Rows, Scale, Verdict
from penstock_studies.limited.graph_point import RESULTS, measure_graph
from penstock_studies.limited.set_point import FACTORS, SETS, measure_set
from penstock_studies.planners import measure_streams
from penstock_studies.unit_cost_point import measure_unit_costs

SET_4 = "4 at 15 s"
SCATTERED = (3, 5, 10)
"""Streams in Figure 14 a, b and c."""
FINDER = {"quick": 9, "full": 10}
"""Streams up to which JTree-Finder is run: :data:`STREAMS_PROVEN` and more."""
GRAPHS = 100
"""Graphs for each number of streams, as in the paper."""
GRAPHS_RUN: Mapping[Scale, int] = {"quick": 8, "full": 100}
"""Graphs that are run in limited processes, for each number of streams."""
RUN_STREAMS = (3, 4, 5)
PLANS = ("mjoin", "bjtree", "jtree")


def set_points(names: Sequence[str], scale: Scale) -> list[Point]:
    """Sets 3 and 4 have thousands of results per tuple: they take most of the time."""
    quick = scale == "quick"
    return [
        Point(
            measure_set,
            {
                "set": name,
                "join": join,
                "seconds": max(20, 2 * int(SETS[name].window) * (1 if quick else 2)),
                "draw": draw,
                "draws": draws,
            },
            f"set {name}, {join}, bounds {draw + 1} of {draws}",
            (120.0 if name in ("3", SET_4) else 25.0) * (1 if quick else 2),
        )
        for name in names
        for join in ("nested-loops", "hash")
        if (name, join) in FACTORS
        for draws in ((1 if name == "1" else 2 if quick else 8),)
        for draw in range(draws)
    ]


def _over_time(rows: Rows, name: str, join: str, title: str, column: str) -> Panel:
    """The middle one of the draws."""
    own = [row for row in rows if row["set"] == name and row["join"] == join]
    draws = sorted({int(as_float(row["draw"])) for row in own})
    own = [row for row in own if row["draw"] == draws[len(draws) // 2]]
    label, scale = {
        "results": ("throughput so far (10⁶ tuples)", 1e-6),
        "queue": ("tuples in queues (10³)", 1e-3),
        "memory": ("memory (MB)", 1e-6),
    }[column]
    scaled = [{**row, "y": scale * as_float(row[column])} for row in own]
    limits = {"limit": scale * as_float(own[0]["limit"])} if column == "memory" and own else None
    lines = series_by(scaled, "plan", "second", "y", is_plain=True)
    return Panel(title, "time (s)", label, lines, limits=limits)


def chart_7(rows: Rows) -> Chart:
    return Chart(
        tuple(
            (
                _over_time(rows, "1", join, f"({letters[0]}) set 1, {words}", "results"),
                _over_time(rows, "1", join, f"({letters[1]}) set 1, {words}", "memory"),
                _over_time(rows, "1", join, f"({letters[2]}) set 1, {words}", "queue"),
            )
            for join, words, letters in (
                ("nested-loops", "nested loops", "abc"),
                ("hash", "hash joins", "def"),
            )
        )
    )


def chart_8(rows: Rows) -> Chart:
    loops = "nested-loops"
    return Chart(
        (
            (
                _over_time(rows, "2", loops, "(a) set 2, nested loops", "results"),
                _over_time(rows, "2", loops, "(b) set 2, nested loops", "queue"),
                _over_time(rows, "3", "hash", "(c) set 3, hash joins", "results"),
            ),
            (
                _over_time(rows, "3", "hash", "(d) set 3, hash joins", "memory"),
                _over_time(rows, SET_4, "hash", "(e) set 4 at 15 s, hash joins", "results"),
                _over_time(rows, SET_4, "hash", "(f) set 4 at 15 s, hash joins", "memory"),
            ),
        )
    )


Run = dict[str, Row]
"""The last row of each plan under the same bounds."""


def _runs(rows: Rows) -> dict[tuple[str, str, int], Run]:
    """By set, join and draw."""
    found: dict[tuple[str, str, int], Run] = {}
    for row in rows:
        key = str(row["set"]), str(row["join"]), int(as_float(row["draw"]))
        found.setdefault(key, {})[str(row["plan"])] = row
    return found


def set_table(rows: Rows) -> Rows:
    """One line for each plan: what the model said and how it ended."""
    return [
        {
            "set": name,
            "join": join,
            "bounds": draw + 1,
            "plan": plan,
            **run_columns(row),
        }
        for (name, join, draw), run in _runs(rows).items()
        for plan, row in run.items()
    ]


def run_columns(row: Row) -> dict[str, Cell]:
    """A run under bounds, for a reader."""
    return {
        "runs": row["runs"],
        "CPU s/s: model": row["model_cpu"],
        "measured": row["cpu"],
        "there": row["capacity"],
        "MB: model": _megabytes(row["model_memory"]),
        "held": _megabytes(row["peak"]),
        "limit": _megabytes(row["limit"]),
        "qualified": "yes" if row["says"] else "no",
        "kept": "yes" if row["keeps"] else "no",
        "results": row["total"],
        "waiting": row["waiting"],
        "ended": None
        if row["ended"] is None
        else f"out of memory after {row['end']} s"
        if row["ended"] == "memory"
        else row["ended"],
    }


def _megabytes(value: Cell) -> float | None:
    return None if value is None else round(as_float(value) / 1e6, 2)


def as_said(runs: Sequence[Run]) -> tuple[int, int]:
    """Runs of fixed plans that ended as the model said, and all of them."""
    fixed = [row for run in runs for plan, row in run.items() if plan != "auto"]
    return sum(row["says"] == row["keeps"] for row in fixed), len(fixed)


def auto_kept(runs: Sequence[Run]) -> tuple[int, int]:
    """Bounds that ``auto`` kept, of those that some fixed plan kept."""
    possible = [
        run["auto"]
        for run in runs
        if "auto" in run and any(row["keeps"] for plan, row in run.items() if plan != "auto")
    ]
    return sum(bool(row["keeps"]) for row in possible), len(possible)


def verdict_7(rows: Rows) -> Verdict:
    runs = _runs(rows)
    if not runs:
        return judge([], "")
    checks, told = [], []
    for (_, join, _), run in runs.items():
        mjoin, tree = run["mjoin"], run["bjtree"]
        memory = as_float(tree["peak"]) / as_float(mjoin["peak"])
        throughput = as_float(tree["total"]) / max(1.0, as_float(mjoin["total"]))
        kept = [plan for plan, row in run.items() if row["keeps"]]
        checks += [abs(throughput - 1) < 0.1, memory > 1.5, len(kept) == len(run)]
        told.append(
            f"set 1, {join}: the tree has {times(throughput)} the results of the mjoin and "
            f"{times(memory)} its memory; within both bounds: {', '.join(kept) or 'none'}"
        )
    return judge(checks, "; ".join(told))


CASES = (
    ("2", ("bjtree",), ("mjoin",)),
    ("3", ("mjoin",), ("bjtree",)),
    (SET_4, ("jtree",), ("bjtree", "mjoin")),
)
"""A set, the plans that are qualified in the paper and those that are not."""


def verdict_8(rows: Rows) -> Verdict:
    runs = _runs(rows)
    if not runs:
        return judge([], "")
    checks, told = [], []
    for name, good, bad in CASES:
        for join in ("nested-loops", "hash"):
            own = [run for (s, j, _), run in runs.items() if (s, j) == (name, join)]
            if not own:
                continue
            said, measured = (
                [
                    run
                    for run in own
                    if all(run[plan][column] for plan in good if plan in run)
                    and not any(run[plan][column] for plan in bad)
                ]
                for column in ("says", "keeps")
            )
            checks.append(bool(measured))
            told.append(
                f"set {name}, {join}: {' and '.join(good)} alone kept in {len(measured)} of "
                f"{len(own)} drawn bounds, qualified alone by the model in {len(said)}"
            )
    right, of = as_said(list(runs.values()))
    kept, possible = auto_kept(list(runs.values()))
    checks += [right >= 0.9 * of, kept == possible]
    told.append(f"the model was right about {right} of {of} runs")
    told.append(f"auto kept {kept} of the {possible} bounds that a fixed plan kept")
    return judge(checks, "; ".join(told))


def graph_points(scale: Scale) -> list[Point]:
    return [
        Point(
            measure_graph,
            {"streams": streams, "graph": graph},
            f"{streams} streams, graph {graph}",
            20.0,
        )
        for graph in range(GRAPHS_RUN[scale])
        for streams in RUN_STREAMS
    ]


def _graph_runs(rows: Rows) -> dict[int, list[Run]]:
    """By the number of streams."""
    found: dict[tuple[int, int], Run] = {}
    for row in rows:
        key = int(as_float(row["streams"])), int(as_float(row["graph"]))
        found.setdefault(key, {})[str(row["plan"])] = row
    return {
        streams: [run for (count, _), run in found.items() if count == streams]
        for streams in sorted({count for count, _ in found})
    }


def graph_table(rows: Rows) -> Rows:
    """By the number of streams: bounds kept by each kind of plan, and by what the model says."""
    return [
        {
            "N": streams,
            "graphs": len(runs),
            **{
                f"{plan} kept": sum(bool(run[plan]["keeps"]) for run in runs if plan in run)
                for plan in (*PLANS, "auto")
            },
            "any fixed": sum(any(run[p]["keeps"] for p in PLANS if p in run) for run in runs),
            "auto, where one fixed": "{} of {}".format(*auto_kept(runs)),
            "as the model said": "{} of {}".format(*as_said(runs)),
            "over memory, untold": sum(
                as_float(row["untold"] or 0) > 0 for run in runs for row in run.values()
            ),
        }
        for streams, runs in _graph_runs(rows).items()
    ]


def chart_graphs(rows: Rows) -> Chart:
    shares = [
        {"plan": plan, "streams": streams, "share": 100 * sum(kept) / len(kept)}
        for streams, runs in _graph_runs(rows).items()
        for plan in (*PLANS, "auto")
        for kept in ([bool(run[plan]["keeps"]) for run in runs if plan in run],)
        if kept
    ]
    axis = "number of streams N"
    lines = series_by(shares, "plan", "streams", "share")
    return Chart(((Panel("bounds kept", axis, "graphs (%)", lines),),))


def verdict_graphs(rows: Rows) -> Verdict:
    runs = [run for each in _graph_runs(rows).values() for run in each]
    if not runs:
        return judge([], "")
    right, of = as_said(runs)
    kept, possible = auto_kept(runs)
    alone = sum(
        bool(run["jtree"]["keeps"]) and not (run["mjoin"]["keeps"] or run["bjtree"]["keeps"])
        for run in runs
        if "jtree" in run
    )
    untold = sum(as_float(row["untold"] or 0) > 0 for run in runs for row in run.values())
    return judge(
        [alone > 0, right >= 0.9 * of, kept >= 0.9 * possible, untold == 0],
        f"{len(runs)} graphs: in {alone} a jtree alone kept both bounds; the model was right about "
        f"{right} of {of} runs of fixed plans; auto kept {kept} of the {possible} bounds that a "
        f"fixed plan kept; {untold} runs held more memory than allowed without saying so",
    )


def planner_points(streams: Sequence[int], scale: Scale) -> list[Point]:
    return [
        Point(
            measure_streams,
            {"streams": count, "graphs": GRAPHS, "finder": count <= FINDER[scale]},
            f"{count} streams",
            5.0 + count / 2 + (4.0 ** (count - 7) if count <= FINDER[scale] else 0),
        )
        for count in streams
    ]


def _planners(rows: Rows) -> list[Row]:
    return [row for row in rows if row["kind"] == "planner"]


def chart_13(rows: Rows) -> Chart:
    own = _planners(rows)
    known = [row for row in own if row["exists"]]
    shares = [
        {**row, "share": 100 * as_float(row["qualified"]) / as_float(row["exists"])}
        for row in known
    ]
    exists = [
        {**row, "share": 100 * as_float(row["exists"]) / as_float(row["settings"])}
        for row in own
        if row["planner"] == "jtree-finder"
    ]
    found = [
        {**row, "share": 100 * as_float(row["qualified"]) / as_float(row["settings"])}
        for row in own
    ]
    axis = "number of streams N"
    return Chart(
        (
            (
                Panel(
                    "(a) time", axis, "mean CPU time (ms)",
                    series_by(own, "planner", "streams", "mean_ms"), log_y=True,
                ),
                Panel(
                    "(b) of those that have a plan", axis, "settings qualified (%)",
                    series_by(shares, "planner", "streams", "share"),
                ),
                Panel(
                    "(c) of all settings", axis, "settings qualified (%)",
                    series_by(exists + [r for r in found if r["planner"] != "jtree-finder"],
                              "planner", "streams", "share"),
                ),
            ),
        )
    )  # fmt: skip


def verdict_13(rows: Rows) -> Verdict:
    own = _planners(rows)
    finder = {row["streams"]: row for row in own if row["planner"] == "jtree-finder"}
    ours = {row["streams"]: row for row in own if row["planner"] == "two-layer"}
    if not finder or not ours:
        return judge([], "")
    counts = sorted(as_float(count) for count in finder)
    most = counts[-1]
    slower = as_float(finder[most]["mean_ms"]) / as_float(ours[most]["mean_ms"])
    growth = (
        as_float(finder[most]["mean_ms"]) / as_float(finder[most - 1]["mean_ms"])
        if (most - 1 in finder)
        else math.nan
    )
    shares = {
        planner: _share(
            [row for row in own if row["planner"] == planner and row["streams"] in finder]
        )
        for planner in ("state-selection", "state-removal", "two-layer-paper")
    }
    with_finder, alone = (
        _share(
            [
                row
                for row in own
                if row["planner"] == "two-layer"
                and row["streams"] in finder
                and (as_float(row["streams"]) <= STREAMS_PROVEN) is is_few
            ]
        )
        for is_few in (True, False)
    )
    last = max(as_float(count) for count in ours)
    return judge(
        [
            slower > 2 and growth > 2,
            min(shares["state-selection"], shares["state-removal"]) == 100,
            shares["two-layer-paper"] == 100,
            alone == 100,
        ],
        f"at {most:.0f} streams JTree-Finder takes {times(slower)} the time of two-layer and grows "
        f"{times(growth)} with each stream; two-layer plans {last:.0f} streams in "
        f"{as_float(ours[last]['mean_ms']):.0f} ms. Of the settings that have a qualified plan, "
        f"state-selection finds one in {shares['state-selection']:.0f} %, state-removal in "
        f"{shares['state-removal']:.0f} %, Algorithm 2 as printed in "
        f"{shares['two-layer-paper']:.0f} %; two-layer in {with_finder:.0f} % up to "
        f"{STREAMS_PROVEN} streams, where it asks JTree-Finder itself, and in {alone:.1f} % beyond",
    )


def _share(rows: Rows) -> float:
    exists = sum(as_float(row["exists"]) for row in rows)
    return 100 * sum(as_float(row["qualified"]) for row in rows) / exists if exists else math.nan


def table_13(rows: Rows) -> Rows:
    return [
        {
            "N": row["streams"],
            "planner": row["planner"],
            "mean ms": row["mean_ms"],
            "most ms": row["most_ms"],
            "qualified": row["qualified"],
            "of": row["settings"],
            "exist": row["exists"],
        }
        for row in _planners(rows)
    ]


def _plans(rows: Rows, streams: int) -> list[Row]:
    return [row for row in rows if row["kind"] == "plan" and row["streams"] == streams]


def chart_14(rows: Rows) -> Chart:
    return Chart(
        (
            tuple(
                Panel(
                    f"({letter}) N = {count}",
                    "memory (tuples)",
                    "CPU (s per s)",
                    series_by(_plans(rows, count), "planner", "memory", "cpu"),
                    kind="scatter",
                )
                for letter, count in zip("abc", SCATTERED, strict=True)
            ),
        )
    )


def summary_14(rows: Rows) -> list[dict[str, Any]]:
    """How many plans each planner found; where both found one, geometric means of the ratios."""
    found = []
    for count in SCATTERED:
        by_graph: dict[Cell, dict[str, Row]] = {}
        for row in _plans(rows, count):
            by_graph.setdefault(row["graph"], {})[str(row["planner"])] = row
        pairs = [
            (each["state-selection"], each["state-removal"])
            for each in by_graph.values()
            if len(each) == 2
        ]
        found.append(
            {
                "N": count,
                "state-selection": sum("state-selection" in each for each in by_graph.values()),
                "state-removal": sum("state-removal" in each for each in by_graph.values()),
                "both": len(pairs),
                **{
                    f"{column} ratio": _mean(
                        [as_float(a[column]) / as_float(b[column]) for a, b in pairs]
                    )
                    for column in ("memory", "cpu")
                },
            }
        )
    return found


def verdict_14(rows: Rows) -> Verdict:
    found = [each for each in summary_14(rows) if each["both"]]
    if not found:
        return judge([], "")
    last = found[-1]
    memory, cpu = last["memory ratio"], last["cpu ratio"]
    return judge(
        [memory < 1, cpu > 1],
        f"at {last['N']} streams, where both find a plan, that of state-selection holds "
        f"{times(memory)} the memory of that of state-removal and needs {times(cpu)} its CPU "
        f"(geometric means over {last['both']})",
    )


def chart_table_3(rows: Rows) -> Chart:
    operations = tuple(f"${row['operation']}$" for row in rows)
    places = tuple(float(i) for i in range(len(rows)))
    return Chart(
        (
            (
                Panel(
                    "CPU cost of basic operations",
                    "operation",
                    "per tuple (ns)",
                    tuple(
                        Series(label, places, tuple(as_float(row[column]) for row in rows))
                        for label, column in (
                            ("paper (1.5 GHz)", "paper"),
                            ("this machine", "here"),
                        )
                    ),
                    kind="bars",
                    log_y=True,
                    categories=operations,
                ),
            ),
        )
    )


def verdict_table_3(rows: Rows) -> Verdict:
    here = {str(row["operation"]): as_float(row["here"]) for row in rows}
    faster = {str(row["operation"]): as_float(row["paper"]) / as_float(row["here"]) for row in rows}
    return judge(
        [here["C_j"] > here["C_i"], here["C_j"] > 5 * here["C_i"]],
        f"C_j {here['C_j']:.3g} ns, C_i {here['C_i']:.3g} ns, C_d {here['C_d']:.3g} ns: "
        f"{faster['C_j']:.0f}, {faster['C_i']:.0f} and {faster['C_d']:.0f} times faster; joining "
        f"costs {times(here['C_j'] / here['C_i'])} an insertion",
    )


def _mean(values: list[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


_LIMITED = (
    "Each plan in a process of its own, pinned to a core of which it gets a half, with "
    "`RLIMIT_DATA` on its memory, rows arriving by the clock on the wall; bounds drawn by the seed "
    "from what the cost model says, before anything runs; see `limited/`. Engines have `Limits` of "
    "the same bounds, no feedback and no disk; auto has no statistics."
)

EXPERIMENTS: Sequence[Experiment] = (
    Experiment(
        name="jtree-table-3",
        paper="JTree",
        figure="Table 3",
        title="what joining, inserting and deleting a tuple costs",
        claim="C_j = 2,200 ns, C_i = C_d = 200 ns on a 1.5 GHz machine: joining costs 11 "
        "insertions.",
        setting="The calibration of `penstock calibrate`, in batches of 10,000 tuples.",
        points=lambda scale: [Point(measure_unit_costs, {}, "calibration", 8.0)],
        chart=chart_table_3,
        verdict=verdict_table_3,
        table=lambda rows: [
            {
                "operation": r["operation"],
                "": r["name"],
                "paper ns": r["paper"],
                "here ns": r["here"],
            }
            for r in rows
        ],
    ),
    Experiment(
        name="jtree-7",
        paper="JTree",
        figure="Figure 7",
        title="set 1, enough of everything: throughput, memory and queues over time",
        claim="mjoin and binary tree have the same throughput and short queues; the tree needs "
        "much more memory.",
        setting=_LIMITED,
        points=lambda scale: set_points(["1"], scale),
        chart=chart_7,
        verdict=verdict_7,
        table=set_table,
    ),
    Experiment(
        name="jtree-8",
        paper="JTree",
        figure="Figure 8",
        title="sets 2 to 4, too little CPU or memory: throughput, queues and memory over time",
        claim="Set 2: the tree has more than twice the throughput of the mjoin, whose queues grow. "
        "Set 3: the tree runs out of memory, the mjoin does not. Set 4: the tree runs out of "
        "memory, a jtree does not, and is ahead of the mjoin.",
        setting=f"{_LIMITED} Set 4 with a window of 15 s instead of 50 s, at which no plan could "
        "keep up. Set 3 with hash joins alone: with nested loops it is left out, as the cost of a "
        "row grows there with the factor that rates are multiplied by.",
        points=lambda scale: set_points(["2", "3", SET_4], scale),
        chart=chart_8,
        verdict=verdict_8,
        table=set_table,
    ),
    Experiment(
        name="jtree-13",
        paper="JTree",
        figure="Figure 13",
        title="time and success of the planners by number of streams",
        claim="JTree-Finder is much slower and fails for few streams already; state-selection and "
        "state-removal find a qualified plan whenever it does (100 %).",
        setting="Random join graphs as in section 6 (100 for each number of streams), limits drawn "
        "once in the region where the choice of plan matters.",
        points=lambda scale: planner_points(range(3, 21), scale),
        chart=chart_13,
        verdict=verdict_13,
        table=table_13,
    ),
    Experiment(
        name="jtree-14",
        paper="JTree",
        figure="Figure 14",
        title="CPU against memory of the qualified plans that two planners find",
        claim="Plans of state-selection tend to need less memory and more CPU than those of "
        "state-removal, the more so the more streams.",
        setting="The plans of Figure 13 for 3, 5 and 10 streams.",
        points=lambda scale: planner_points(SCATTERED, scale),
        chart=chart_14,
        verdict=verdict_14,
        table=summary_14,
    ),
    Experiment(
        name="jtree-run",
        paper="JTree",
        figure="Section 6, run",
        title="random graphs in limited processes: who keeps both bounds",
        claim="Jtrees make it more likely that there is a qualified plan; the cost model tells "
        "which plans are.",
        setting=f"{_LIMITED} Graphs of Figure 13 with {RESULTS:.0f} results for each row, large "
        "enough for a limit on memory to be felt (quick: 8 for each number of streams, full: 100).",
        points=graph_points,
        chart=chart_graphs,
        verdict=verdict_graphs,
        table=graph_table,
    ),
)

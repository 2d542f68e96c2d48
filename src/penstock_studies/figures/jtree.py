"""Figures 7, 8, 13 and 14 and Table 3 of JTree (Raghavan, Rundensteiner and others).

Figure 7 is set 1 (throughput, memory, queue), Figure 8 has sets 2 (throughput, queue), 3 and 4
(throughput, memory each), all over time. Figure 13 compares planners, Figure 14 the plans that two
of them find.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock_studies.figures.judgement import as_float, judge, times
from penstock_studies.lab.chart import Chart, Panel, Series, series_by
from penstock_studies.lab.experiment import Cell, Experiment, Point, Row, Rows, Scale, Verdict
from penstock_studies.planners import measure_streams
from penstock_studies.set_timeline import measure_set
from penstock_studies.unit_cost_point import measure_unit_costs

SET_4 = "4 at 15 s"
SCATTERED = (3, 5, 10)
"""Streams in Figure 14 a, b and c."""
FINDER = {"quick": 7, "full": 8}
"""Up to how many streams JTree-Finder is run."""
PLANS = {"mjoin": "mjoin", "bjtree": "bjtree", "jtree": "jtree"}


def set_points(names: Sequence[str], scale: Scale) -> list[Point]:
    """Sets 3 and 4 have thousands of results per tuple: quick, once and with nested loops only."""
    many = ("3", SET_4)
    quick = scale == "quick"
    return [
        Point(
            measure_set,
            {
                "set": name,
                "join": join,
                "seconds": 40 if quick else 200,
                "rounds": 5 if not quick else 1 if name in many else 3,
            },
            f"set {name}, {join}",
            (8.0 if name in many else 3.0) * (1 if quick else 25),
        )
        for name in names
        for join in ("nested-loops", "hash")
        if not (quick and name in many and join == "hash")
    ]


def _over_time(rows: Rows, name: str, join: str, title: str, column: str) -> Panel:
    own = [row for row in rows if row["set"] == name and row["join"] == join]
    label, scale = {
        "results": ("throughput so far (10³ tuples)", 1e-3),
        "queue": ("tuples in queues", 1.0),
        "memory": ("memory (kB)", 1e-3),
    }[column]
    scaled = [{**row, "y": scale * as_float(row[column])} for row in own]
    room = next((row["room"] for row in own if row["room"] is not None), None)
    limits = {"limit": scale * as_float(room)} if column == "memory" and room is not None else None
    lines = series_by(scaled, "plan", "second", "y", is_plain=True)
    if column == "memory" and limits:
        last = max(as_float(row["second"]) for row in own)
        lines = tuple(_with_end(line, last, scale * as_float(room)) for line in lines)
    return Panel(title, "time (s)", label, lines, limits=limits)


def _with_end(line: Series, last: float, limit: float) -> Series:
    """A plan that ran out of memory: its line goes up to the limit."""
    if line.x[-1] >= last:
        return line
    return Series(line.label, (*line.x, line.x[-1] + 1), (*line.y, limit), True)


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
                _over_time(rows, "3", loops, "(c) set 3, nested loops", "results"),
            ),
            (
                _over_time(rows, "3", loops, "(d) set 3, nested loops", "memory"),
                _over_time(rows, SET_4, loops, "(e) set 4 at 15 s, nested loops", "results"),
                _over_time(rows, SET_4, loops, "(f) set 4 at 15 s, nested loops", "memory"),
            ),
        )
    )


def set_table(rows: Rows) -> Rows:
    """One line for each plan: how it ended."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        found[str(row["set"]), str(row["join"]), str(row["plan"])] = row
    ends = {(name, join): _end(rows, name, join) for name, join, _ in found}
    return [
        {
            "set": name,
            "join": join,
            "plan": plan,
            "CPU s/s needed": row["cpu"],
            "CPU s/s there": row["capacity"],
            "peak kB": round(as_float(row["peak"]) / 1000),
            "limit kB": None if row["room"] is None else round(as_float(row["room"]) / 1000),
            "results": row["results"],
            "queue at the end": row["queue"],
            "ended": None
            if row["second"] == ends[name, join]
            else f"out of memory after {row['second']} s",
        }
        for (name, join, plan), row in found.items()
    ]


def _end(rows: Rows, name: str, join: str) -> float:
    return max(as_float(row["second"]) for row in rows if (row["set"], row["join"]) == (name, join))


def _last(rows: Rows, name: str, join: str) -> dict[str, Row]:
    """The last row of each plan."""
    return {str(row["plan"]): row for row in rows if (row["set"], row["join"]) == (name, join)}


def verdict_7(rows: Rows) -> Verdict:
    last = _last(rows, "1", "nested-loops")
    if not {"mjoin", "bjtree"} <= set(last):
        return judge([], "")
    mjoin, tree = last["mjoin"], last["bjtree"]
    memory = as_float(tree["peak"]) / as_float(mjoin["peak"])
    throughput = as_float(tree["results"]) / max(1.0, as_float(mjoin["results"]))
    return judge(
        [abs(throughput - 1) < 0.1, memory > 1.5],
        f"set 1: the tree has {times(throughput)} the results of the mjoin and {times(memory)} its "
        f"memory; queues at the end {mjoin['queue']} and {tree['queue']} tuples",
    )


def verdict_8(rows: Rows) -> Verdict:
    two, three, four = (_last(rows, name, "nested-loops") for name in ("2", "3", SET_4))
    if not ("mjoin" in two and "mjoin" in three and {"mjoin", "jtree"} <= set(four)):
        return judge([], "")
    gain = as_float(two["bjtree"]["results"]) / max(1.0, as_float(two["mjoin"]["results"]))
    end_3, end_4 = _end(rows, "3", "nested-loops"), _end(rows, SET_4, "nested-loops")
    # A plan that breaks down in its first second has no row at all.
    ended_3 = as_float(three["bjtree"]["second"]) if "bjtree" in three else 0.0
    ended_4 = as_float(four["bjtree"]["second"]) if "bjtree" in four else 0.0
    jtree = as_float(four["jtree"]["results"]) / max(1.0, as_float(four["mjoin"]["results"]))
    loops, hashed = (
        as_float(found["mjoin"]["cpu"]) / as_float(found["bjtree"]["cpu"])
        for found in (two, _last(rows, "2", "hash") or two)
    )
    return judge(
        [
            gain > 2,
            as_float(two["mjoin"]["queue"]) > 10 * max(1.0, as_float(two["bjtree"]["queue"])),
            ended_3 < end_3 and three["mjoin"]["second"] == end_3,
            ended_4 < end_4 and four["jtree"]["second"] == end_4 and jtree > 1,
        ],
        f"set 2: the tree gives {times(gain)} the results of the mjoin, queues "
        f"{two['mjoin']['queue']} and {two['bjtree']['queue']}; set 3: the tree runs out of memory "
        f"after {ended_3:.0f} s, the mjoin goes on; set 4: the tree ends after {ended_4:.0f} s, "
        f"the jtree goes on and gives {times(jtree)} the results of the mjoin. In set 2 the mjoin "
        f"needs {times(loops)} the CPU of the tree with nested loops, {times(hashed)} with hash "
        "joins",
    )


def planner_points(streams: Sequence[int], scale: Scale) -> list[Point]:
    graphs = 20 if scale == "quick" else 100
    return [
        Point(
            measure_streams,
            {"streams": count, "graphs": graphs, "finder": count <= FINDER[scale]},
            f"{count} streams",
            (1.0 + count / 10) * graphs / 20 + (30 if count == 8 and scale == "full" else 0),
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
        for planner in ("state-selection", "state-removal", "two-layer")
    }
    last = max(as_float(count) for count in ours)
    return judge(
        [
            slower > 2 and growth > 2,
            min(shares["state-selection"], shares["state-removal"]) == 100,
            shares["two-layer"] == 100,
        ],
        f"at {most:.0f} streams JTree-Finder takes {times(slower)} the time of two-layer and grows "
        f"{times(growth)} with each stream; two-layer plans {last:.0f} streams in "
        f"{as_float(ours[last]['mean_ms']):.0f} ms. Of the settings that have a qualified plan, "
        f"state-selection finds one in {shares['state-selection']:.0f} %, state-removal in "
        f"{shares['state-removal']:.0f} %, two-layer in {shares['two-layer']:.0f} %",
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


_SLOWED = (
    "The engine, slowed down to a machine that is just fast enough for the plan that should fit; "
    "see `set_timeline.py`."
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
        setting=_SLOWED,
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
        setting=f"{_SLOWED} Set 4 with a window of 15 s instead of 50 s, at which no plan could "
        "keep up.",
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
        setting="Random join graphs as in section 6 (20 for each number of streams, full: 100), "
        "limits in the region where the choice of plan matters.",
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
)

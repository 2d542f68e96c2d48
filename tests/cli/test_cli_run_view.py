"""What a run shows, from events alone: screens of any width, lines, summaries."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from penstock.cli.run.progress import Progress
from penstock.cli.run.view import LineView, LiveView, show_summary, started, summary
from penstock.cli.run.words import count, curve, short, size, span
from penstock.telemetry import (
    Batch,
    CellBatch,
    Event,
    Failure,
    PlanDecision,
    Restart,
    Start,
    Stop,
)

NONE: dict[str, str] = {}
ABOUT = ("shop", "SELECT A.id FROM A [NOW]", "(A B)", 2, "2 cells", NONE, "parquet", NONE)
START = Start("t", "r", *ABOUT)


def batch(number: int, cells: int = 2) -> Batch:
    made = tuple(
        CellBatch(c, {"A": 600}, 40, {"A": 2}, 5 << 20, 1 << 20, 0.25, 0.5, "live", "(A B)")
        for c in range(cells)
    )
    rows, late = {"A": 1_000, "B": 200}, {"A": 4, "B": 0}
    return Batch(
        f"2026-01-01T00:00:{number:02}.000Z",
        "r",
        number,
        0.5,
        rows,
        80,
        late,
        10 << 20,
        2 << 20,
        0.25,
        {},
        made,
    )


def seen(*events: Event) -> Progress:
    progress = Progress()
    for event in events:
        progress.note(event)
    return progress


def test_changes_of_plan_are_shown() -> None:
    about = ("(A B C)", "((A C) B)", "it pays", 8.5, 99)
    change = PlanDecision("t", "r", 0, 1, "migrate", *about)
    over = PlanDecision(
        "t", "r", 1, 0, "keep", "(A B)", "(A B)", "no plan fits", 9.0, 99, exceeded=("memory",)
    )
    done = replace(change, action="complete", reason="nothing is missing any more")
    progress = seen(START, batch(0), change, over)
    assert progress.changes == 1
    assert progress.exceeded == ["memory"]
    written = io.StringIO()
    view = LineView(Console(file=written, width=100))
    view.show(progress, [change, over, done])
    assert "cell 1: plan ((A C) B): it pays\n" in written.getvalue()
    assert "cell 1: complete: plan ((A C) B): nothing is missing any more" in written.getvalue()
    assert "cell 0: keeps (A B): no plan fits; OVER THE LIMIT of memory" in written.getvalue()
    screen = io.StringIO()
    console = Console(file=screen, width=100)
    console.print(LiveView(console).screen(progress))
    assert "OVER THE LIMIT" in screen.getvalue()


def test_progress_adds_up() -> None:
    progress = seen(START, batch(0), batch(1), Stop("t", "r", "finished", 2, 2_400, 160, 1.0))
    assert progress.rows == {"A": 2_000, "B": 400}
    assert progress.late["A"] == 8
    assert (progress.results, progress.batches, progress.busy) == (160, 2, 1.0)
    assert progress.rate() == 2_400 / 1.5
    assert progress.rate("B") == 400 / 1.5
    assert seen(START).rate() == 0


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("cells", [0, 2, 40])
def test_the_screen(width: int, cells: int) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=width, height=50)
    view = LiveView(console)
    console.print(view.screen(seen()))
    view.say("stopping")
    console.print(view.screen(seen(START, batch(0, cells), batch(1, cells))))
    shown = written.getvalue()
    assert "waiting for the first micro-batch" in shown
    assert "2,400" in shown
    assert "stopping" in shown
    if width > 60:
        assert ("engine came" in shown) == (cells > 0)
    assert ("and 28 cells more" in shown) == (cells == 40)


def test_the_screen_names_the_plan_that_runs() -> None:
    """Not the one that the run began with."""
    changed = batch(1)
    first, other = changed.cells
    both = replace(changed, cells=(first, replace(other, plan="(B A)")))
    last = replace(changed, cells=tuple(replace(each, plan="(B A)") for each in changed.cells))
    for latest, told in (
        (changed, "plan (A B)"),
        (both, "2 plans in 2 cells"),
        (last, "plan (B A)"),
    ):
        written = io.StringIO()
        console = Console(file=written, width=100)
        console.print(LiveView(console).screen(seen(START, latest)))
        assert f" {told} " in written.getvalue()


def test_lines_come_once_per_second_and_the_last_always() -> None:
    written = io.StringIO()
    now = 0.0
    view = LineView(Console(file=written, width=300), lambda: now)
    progress = Progress()
    end = Stop("t", "r", "finished", 3, 0, 0, 1.0)
    shown: list[tuple[float, list[Event]]] = [
        (0.0, [START, batch(0)]),
        (0.5, [batch(1)]),
        (0.6, [batch(2)]),
        (0.7, [end]),
    ]
    for now, events in shown:  # noqa: B007 - the clock of the view
        for event in events:
            progress.note(event)
        view.show(progress, events)
    lines = written.getvalue().splitlines()
    assert lines[0] == "shop: started, in 2 cells"
    told = [line for line in lines if line.startswith("batch")]
    assert [line.split()[1] for line in told] == ["0:", "1-2:"]
    assert "2,400 rows in   1.0 s" in told[1]  # Of both.
    assert "160 results;" in told[1]
    assert "240 results in all" in told[1]


def test_summaries() -> None:
    for end, title in (
        (Stop("t", "r", "finished", 1, 1_200, 80, 1.0), "summary"),
        (Failure("t", "r", "why"), "failed"),
    ):
        written = io.StringIO()
        console = Console(file=written, width=100)
        show_summary(console, seen(START, batch(0), end), 2.0, True, ("next", "go on"))
        assert title in written.getvalue()
        assert "go on" in written.getvalue()
        assert ("error    why" in written.getvalue()) == isinstance(end, Failure)
    written = io.StringIO()
    show_summary(Console(file=written, width=100), seen(START, batch(0)), 2.0, False, ("x", ""))
    assert written.getvalue().splitlines() == [
        "input       1,200 rows in 2.0 s; A 1,000, B 200",
        "results     80",
        "late        4 rows behind the watermark, dropped",
        "batches     1, which took 500 ms",
        "engines     250 ms in all cells, of 500 ms that batches took",
        "state       10.5 MB in engines, 2.1 MB in Spark",
    ]


def test_words() -> None:
    assert (
        started(Restart("t", "r", *ABOUT, after=3))
        == "shop: goes on after micro-batch 3, in 2 cells"
    )
    assert [short(n) for n in (7, 1_234, 56_789, 1e6)] == ["7", "1.23 k", "56.8 k", "1.00 M"]
    assert [size(n) for n in (7, 1_234, 5e6, 2e9)] == ["7 B", "1.2 kB", "5.0 MB", "2.0 GB"]
    assert [span(s) for s in (0.05, 3, 75, 7_320)] == ["50 ms", "3.0 s", "1 min 15 s", "2 h 2 min"]
    assert [count(n, "batch") for n in (1, 2)] == ["1 batch", "2 batches"]
    assert curve([0, 1, 2]) == "▁▅█"


def test_every_row_that_was_not_joined_has_a_line() -> None:
    told = replace(
        batch(0),
        dropped={"A": {"late": 4, "unreadable": 2}, "B": {"no event time": 1}},
        filtered={"A": 30},
    )
    cell = replace(told.cells[0], overload={"skipped": 1_500, "lost": {"results": 20.0}})
    progress = seen(START, replace(told, cells=(cell,)))
    lines = [f"{label}: {text}" for label, text in summary(progress, 1.0)]
    assert "late: 4 rows behind the watermark, dropped; A 4" in lines
    assert "rejected: 2 rows unreadable; A 2" in lines
    assert "rejected: 1 row without an event time; B 1" in lines
    assert "filtered: 30 rows that the query's own filters let not pass; A 30" in lines
    assert "shed: 1,500 probes skipped, about 20 results lost" in lines
    written = io.StringIO()
    LineView(Console(file=written, width=200)).show(progress, [progress.recent[0]])
    (line,) = written.getvalue().splitlines()
    assert line == (
        "batch     0:     1,200 rows in  500 ms, 2.40 k rows/s,        80 results, 4 late, "
        "2 unreadable, 1 no event time, 30 filtered; state 10.5 MB; 80 results in all"
    )

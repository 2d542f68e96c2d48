"""What the demo shows: a live screen in a terminal, a line per second elsewhere."""

from __future__ import annotations

import datetime
import time
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import penstock
from penstock.cli.demo.progress import Progress
from penstock.cli.demo.streams import ABOUT
from penstock.cli.run.shortage import shortage
from penstock.cli.run.words import curve, short, size

_FRAME = 0.1
_WIDEST = 100
_ACCENT = "cyan"


class View(Protocol):
    """Shows the progress of a run."""

    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: Progress) -> None: ...

    def summarise(self, progress: Progress) -> None: ...


class LogView:
    """One line per second, for logs and pipes."""

    def __init__(self, console: Console, engine: penstock.Engine) -> None:
        self._console = console
        self._engine = engine
        self._next = 1.0

    def __enter__(self) -> LogView:
        self._print(f"Penstock demo: {ABOUT}")
        self._print(self._engine.query.text)
        self._print(f"plan {self._engine.plan}")
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, progress: Progress) -> None:
        if progress.elapsed < self._next:
            return
        self._next = progress.elapsed + 1.0
        metrics = progress.metrics
        running_short = shortage([metrics["overload"]])
        self._print(
            f"{progress.elapsed:5.1f} s  event time {_clock(metrics)}  "
            f"{progress.rows:>12,} tuples  {short(progress.engine_rate):>6}/CPU s  "
            f"{progress.results:>10,} results  {metrics['late']:>6,} late  "
            f"state {size(metrics['state']['bytes'])}"
            + (f"  SHORT {running_short}" if running_short else "")
        )

    def summarise(self, progress: Progress) -> None:
        for label, value in summary(progress):
            self._print(f"{label:<14}{value}")
        for row in progress.latest[-3:]:
            self._print(f"{'a result':<14}" + ", ".join(str(value) for value in row.values()))

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


class LiveView:
    """The screen of a terminal, redrawn ten times a second."""

    def __init__(self, console: Console, engine: penstock.Engine) -> None:
        self._console = console
        self._engine = engine
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._drawn = 0.0
        self._width = min(console.width, _WIDEST)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, progress: Progress) -> None:
        now = time.perf_counter()
        if now - self._drawn < _FRAME:
            return
        self._drawn = now
        self._live.update(self.screen(progress), refresh=True)

    def summarise(self, progress: Progress) -> None:
        self._console.print(self.screen(progress))
        table = Table(box=None, show_header=False, pad_edge=False)
        for label, value in summary(progress):
            table.add_row(Text(label, style="dim"), value)
        self._console.print(
            Panel(
                table, title="summary", title_align="left", border_style=_ACCENT, width=self._width
            )
        )

    def screen(self, progress: Progress) -> RenderableType:
        """Everything at once: query, streams, results."""
        metrics = progress.metrics
        return Group(
            self._heading(progress, metrics),
            self._streams(progress, metrics),
            self._results(progress),
        )

    def _heading(self, progress: Progress, metrics: dict[str, Any]) -> RenderableType:
        query = Syntax(
            self._engine.query.text, "sql", theme="ansi_dark", background_color="default"
        )
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="dim")
        facts.add_column(justify="right", style="bold")
        facts.add_row("event time", _clock(metrics))
        facts.add_row("tuples", f"{progress.rows:,}")
        facts.add_row("per CPU second", short(progress.engine_rate))
        facts.add_row("results", f"{progress.results:,}")
        facts.add_row("late, dropped", f"{metrics['late']:,}")
        facts.add_row("state", size(metrics["state"]["bytes"]))
        for number, part in enumerate(filter(None, shortage([metrics["overload"]]).split(", "))):
            facts.add_row("" if number else "SHORT OF CPU", Text(part, style="bold red"))
        grid = Table.grid(expand=True)
        grid.add_column(ratio=1)
        grid.add_column(justify="right")
        grid.add_row(query, facts)
        return Panel(
            grid,
            title=f"[bold]Penstock[/] · {ABOUT}",
            title_align="left",
            subtitle=f"plan {self._engine.plan}",
            subtitle_align="right",
            border_style=_ACCENT,
            width=self._width,
        )

    def _streams(self, progress: Progress, metrics: dict[str, Any]) -> RenderableType:
        wide = self._width >= _WIDEST
        table = Table(box=None, expand=True, pad_edge=False)
        table.add_column("stream", style="bold", no_wrap=True)
        for heading in ("tuples", "per second", "late", "held", "in memory"):
            table.add_column(heading, justify="right", no_wrap=True)
        if wide:
            table.add_column("")
        windows = metrics["state"]["windows"]
        most = max(1, *(window["rows"] for window in windows.values()))
        for name, window in windows.items():
            source = metrics["sources"][name]
            bar = Text("━" * round(12 * window["rows"] / most), style=_ACCENT)
            table.add_row(
                name,
                f"{source['rows']:,}",
                short(source["rows"] / max(progress.elapsed, 1e-9)),
                Text(f"{source['late']:,}", style="yellow" if source["late"] else "dim"),
                f"{window['rows']:,}",
                size(window["bytes"]),
                *([bar] if wide else []),
            )
        for name, join in metrics["state"]["joins"].items():
            streams = name.strip("{}").replace(", ", " ⋈ ")
            table.add_row(streams, "", "", "", f"{join['rows']:,}", size(join["bytes"]))
        return Panel(
            table,
            title="windows and stored joins",
            title_align="left",
            border_style="dim",
            width=self._width,
        )

    def _results(self, progress: Progress) -> RenderableType:
        table = Table(box=None, expand=True, pad_edge=False, show_header=False)
        for style in ("dim", "bold", "", "", "green"):
            table.add_column(style=style, justify="right" if style == "green" else "left")
        for row in progress.latest[-6:]:
            table.add_row(
                f"{row['ts']:%H:%M:%S}.{row['ts'].microsecond // 1000:03d}",
                row["name"],
                row["city"],
                row["item"],
                f"{row['price']:,} €",
            )
        done = list(progress.history)[:-1][-(self._width - 24) :]
        rate = 10 * sum(done[-10:]) / max(1, len(done[-10:]))
        line = Table.grid(expand=True)
        line.add_column(ratio=1)
        line.add_column(justify="right", style="bold")
        line.add_row(Text(curve(done), style=_ACCENT), f"{short(rate)} results/s")
        return Panel(
            Group(table, Text(), line),
            title="latest results",
            title_align="left",
            border_style="dim",
            width=self._width,
        )


def summary(progress: Progress) -> list[tuple[str, str]]:
    """The run in a few lines, as pairs of label and text."""
    metrics = progress.metrics
    state = metrics["state"]
    return [
        ("input", f"{progress.rows:,} tuples in {progress.elapsed:.1f} s, out of order"),
        (
            "engine",
            f"{short(progress.engine_rate)} tuples per CPU second; {metrics['pushes']:,} pushes, "
            f"the slowest took {1e3 * progress.slowest:.1f} ms",
        ),
        ("results", f"{progress.results:,}, each in the push in which its last tuple arrived"),
        ("late", f"{metrics['late']:,} tuples came after the watermark, were dropped and counted"),
        (
            "state",
            f"{size(state['bytes'])}: what the windows hold, not what has passed "
            f"({sum(w['rows'] for w in state['windows'].values()):,} of {progress.rows:,} tuples)",
        ),
        *([("overload", _spent(metrics))] if "budget" in metrics["overload"] else []),
    ]


def _spent(metrics: dict[str, Any]) -> str:
    """What the policy of the run has come to."""
    overload = metrics["overload"]
    told = f"{overload['policy']}, {overload['budget']}: {short(overload['probes'])} probes made"
    if overload["policy"] == "shed":
        told += f", {short(overload['skipped'])} skipped"
    if overload["policy"] == "defer":
        told += (
            f", {short(overload['paid'])} of them after their turn, "
            f"{short(overload['debt']['probes'])} still owed"
        )
        if overload["stale"] or overload["forgotten"]:
            told += (
                f", {short(overload['forgotten'])} given up, {short(overload['stale'])} results "
                "made too late"
            )
    lost = overload["lost"]
    if lost["results"]:
        share = lost["results"] / max(1.0, metrics["results"] + lost["results"])
        told += (
            f"; about {short(lost['results'])} ± {short(lost['error'])} results lost "
            f"({100 * share:.1f} % of all)"
        )
    return told


def _clock(metrics: dict[str, Any]) -> str:
    """The newest event time."""
    now = datetime.datetime.fromtimestamp(metrics["now"] / 1000, datetime.UTC)
    return f"{now:%H:%M:%S}"

"""What a run shows: a live screen in a terminal, a line per micro-batch elsewhere.

Both are drawn from the same :class:`~penstock.cli.run.progress.Progress`, and end with the same
summary. ``extra`` lets a command add a panel of its own, such as the latest results.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from penstock.cli.run.progress import Progress
from penstock.cli.run.shortage import shortage
from penstock.cli.run.words import count, curve, short, size, span
from penstock.telemetry import (
    Alert,
    Batch,
    Event,
    Failure,
    Order,
    PlanDecision,
    Restart,
    Start,
    Warned,
)

_WIDEST = 110
_ACCENT = "cyan"
_MOST_CELLS = 12
_LINES_EVERY = 1.0

ORIGINS = {
    "new": "the start",
    "live": "memory",
    "replayed": "memory, caught up",
    "restored": "the checkpoint",
}
"""Where the engine of a cell came from, in words."""

Extra = Callable[[], RenderableType | None]


class View(Protocol):
    """Shows a run."""

    def __enter__(self) -> View: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: Progress, events: list[Event]) -> None: ...

    def say(self, line: str) -> None: ...


class LineView:
    """Plain lines, for logs and pipes: at most one per second for micro-batches. Those that come in
    between share the next line, so that numbers of lines add up to the totals."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._next = 0.0
        self._pending: list[Batch] = []
        """Micro-batches that no line has told so far."""

    def __enter__(self) -> LineView:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def show(self, progress: Progress, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Start):
                self.say(started(event))
                self.say(f"begins with plan {event.plan}, in {event.placement}")
                if event.lane:
                    self.say(event.lane)
            elif isinstance(event, Warned):
                self.say(f"warning: {event.text}")
            elif isinstance(event, Alert):
                self.say(f"alert{' is over' if event.is_over else ''}: {event.text}")
            elif isinstance(event, Order):
                self.say(ordered(event))
            elif isinstance(event, PlanDecision):
                if event.action != "keep" or event.exceeded:
                    self.say(decided(event))
            elif isinstance(event, Batch):
                self._pending.append(event)
        is_over = progress.end is not None
        if self._pending and (self._clock() >= self._next or is_over):
            self.say(_line(self._pending, progress.results))
            self._pending = []
            self._next = self._clock() + _LINES_EVERY


class LiveView:
    """The screen of a terminal."""

    def __init__(self, console: Console, extra: Extra | None = None) -> None:
        self._console = console
        self._extra = extra
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._width = min(console.width, _WIDEST)
        self._said = ""
        self._progress: Progress | None = None

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        if self._progress is not None:
            self._said = ""
            self._console.print(self.screen(self._progress))

    def say(self, line: str) -> None:
        self._said = line

    def show(self, progress: Progress, events: list[Event]) -> None:
        self._progress = progress
        self._live.update(self.screen(progress), refresh=True)

    def screen(self, progress: Progress) -> RenderableType:
        """Everything at once: query, totals, sources, cells."""
        parts: list[RenderableType] = [self._heading(progress), self._sources(progress)]
        if progress.cells:
            parts.append(self._cells(progress))
        extra = self._extra() if self._extra is not None else None
        if extra is not None:
            parts.append(self._panel("latest results", extra))
        parts += [Text(f"warning: {each}", style="yellow") for each in progress.warnings]
        if self._said:
            parts.append(Text(self._said, style="yellow"))
        return Group(*parts)

    def _heading(self, progress: Progress) -> RenderableType:
        start, latest = progress.start, progress.latest
        text = start.query if start else ""
        query = Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="dim")
        facts.add_column(justify="right", style="bold", no_wrap=True)
        facts.add_row("rows", f"{sum(progress.rows.values()):,}")
        facts.add_row("per second", short(progress.rate()))
        facts.add_row("results", f"{progress.results:,}")
        for reason, number in reasons_of(progress).items():
            facts.add_row(f"{reason}, dropped", f"{number:,}")
        for source in progress.silent:
            facts.add_row("SILENT", Text(f"all wait for {source}", style="bold yellow"))
        facts.add_row("micro-batches", f"{progress.batches:,}")
        facts.add_row("the last took", span(latest.seconds) if latest else "")
        facts.add_row("state", size(latest.state_bytes) if latest else "")
        facts.add_row("changes of plan", f"{progress.changes:,}")
        if progress.exceeded:
            facts.add_row("OVER THE LIMIT", Text(", ".join(progress.exceeded), style="bold red"))
        running_short = shortage(cell.overload for cell in progress.cells)
        for number, part in enumerate(filter(None, running_short.split(", "))):
            facts.add_row("" if number else "SHORT OF CPU", Text(part, style="bold red"))
        grid = Table.grid(expand=True)
        grid.add_column(ratio=1)
        grid.add_column(justify="right")
        grid.add_row(query, facts)
        return Panel(
            grid,
            title=f"[bold]Penstock[/] · {start.job if start else 'starting'}",
            title_align="left",
            subtitle=_plans(progress),
            subtitle_align="right",
            border_style=_ACCENT,
            width=self._width,
        )

    def _sources(self, progress: Progress) -> RenderableType:
        table = Table(box=None, expand=True, pad_edge=False)
        table.add_column("source", style="bold", no_wrap=True)
        for heading in ("rows", "per second", "last batch", "late", "rejected", "filtered"):
            table.add_column(heading, justify="right", no_wrap=True)
        latest = progress.latest
        for name in latest.rows if latest else ():
            late = progress.late[name]
            rejected = sum(progress.dropped.get(name, {}).values()) - late
            table.add_row(
                name,
                f"{progress.rows[name]:,}",
                short(progress.rate(name)),
                f"{latest.rows[name]:,}" if latest else "",
                Text(f"{late:,}", style="yellow" if late else "dim"),
                Text(f"{rejected:,}", style="yellow" if rejected else "dim"),
                Text(f"{progress.filtered[name]:,}", style="dim"),
            )
        if latest is None:
            return self._panel("sources", Text("waiting for the first micro-batch", style="dim"))
        seconds = [batch.seconds for batch in progress.recent][-(self._width - 40) :]
        bars = Table.grid(expand=True)
        bars.add_column(ratio=1)
        bars.add_column(justify="right")
        bars.add_row(
            Text(curve(seconds), style=_ACCENT),
            f"micro-batches, up to {span(max(seconds))}",
        )
        return self._panel("sources", Group(table, Text(), bars))

    def _cells(self, progress: Progress) -> RenderableType:
        table = Table(box=None, expand=True, pad_edge=False)
        table.add_column("cell", style="bold", justify="right")
        headings = (
            *("rows", "results", "late", "state", "stored", "engine", "whole cell"),
            "engine came from",
        )
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for cell in progress.cells[:_MOST_CELLS]:
            table.add_row(
                str(cell.cell),
                f"{sum(cell.rows.values()):,}",
                f"{cell.results:,}",
                f"{sum(cell.late.values()):,}",
                size(cell.state_bytes),
                size(cell.stored_bytes),
                span(cell.engine_seconds),
                span(cell.total_seconds),
                ORIGINS.get(cell.origin, cell.origin),
            )
        more = len(progress.cells) - _MOST_CELLS
        rest = [Text(f"and {count(more, 'cell')} more", style="dim")] if more > 0 else []
        return self._panel("cells in the last micro-batch", Group(table, *rest))

    def _panel(self, title: str, inside: RenderableType) -> RenderableType:
        return Panel(inside, title=title, title_align="left", border_style="dim", width=self._width)


def _plans(progress: Progress) -> str | None:
    """The plan that runs, or how many there are in the cells; at first that of the start."""
    running = {cell.plan for cell in progress.cells if cell.plan}
    if len(running) > 1:
        return f"{count(len(running), 'plan')} in {count(len(progress.cells), 'cell')}"
    plan = next(iter(running), progress.start.plan if progress.start else None)
    return None if plan is None else escape(f"plan {plan}")


def decided(event: PlanDecision) -> str:
    """A decision about a plan in one line."""
    if event.action in ("pin", "undo", "unpin"):
        return f"cell {event.cell}: {event.action}: plan {event.plan}"
    told = {"migrate": f"plan {event.plan}", "keep": f"keeps {event.plan}"}
    what = told.get(event.action, f"{event.action}: plan {event.plan}")
    over = f"; OVER THE LIMIT of {' and '.join(event.exceeded)}" if event.exceeded else ""
    return f"cell {event.cell}: {what}: {event.reason}{over}"


def ordered(event: Order) -> str:
    """What somebody wants of the plan in one line."""
    what = f"ordered: {event.order} {event.plan or event.source}".rstrip()
    return f"{what}: refused: {event.refused}" if event.refused else what


def started(event: Start) -> str:
    """The beginning of a run in one line."""
    cells = count(event.cells, "cell")
    if isinstance(event, Restart):
        return f"{event.job}: goes on after micro-batch {event.after}, in {cells}"
    return f"{event.job}: started, in {cells}"


def summary(progress: Progress, seconds: float) -> list[tuple[str, str]]:
    """The run in a few lines, as pairs of label and text."""
    rows, latest = sum(progress.rows.values()), progress.latest
    by_source = ", ".join(f"{name} {number:,}" for name, number in progress.rows.items())
    lines = [
        (
            "input",
            "; ".join(filter(None, (f"{rows:,} rows in {span(seconds)}", by_source))),
        ),
        ("results", f"{progress.results:,}"),
        *dropped_lines(progress),
        *shed_line(progress),
    ]
    if latest is not None:
        usual = progress.busy / progress.batches
        lines += [
            (
                "batches",
                f"{progress.batches:,}, {span(usual)} each, the slowest {span(progress.slowest)}"
                if progress.batches > 1
                else f"1, which took {span(usual)}",
            ),
            (
                "engines",
                f"{span(progress.engine)} in all cells, of {span(progress.busy)} that batches took",
            ),
            (
                "state",
                f"{size(latest.state_bytes)} in engines, {size(latest.stored_bytes)} in Spark",
            ),
        ]
    return lines


def reasons_of(progress: Progress) -> Counter[str]:
    """Dropped rows by reason; late ones are always among them."""
    found = Counter({"late": sum(progress.late.values())})
    for reasons in progress.dropped.values():
        found.update({reason: number for reason, number in reasons.items() if reason != "late"})
    return found


def dropped_lines(progress: Progress) -> list[tuple[str, str]]:
    """What became of rows that were not joined, as pairs of label and text."""
    lines = []
    words = {"late": "behind the watermark, dropped", "no event time": "without an event time"}
    for reason, total in reasons_of(progress).items():
        sources = {source: reasons[reason] for source, reasons in progress.dropped.items()}
        label = "late" if reason == "late" else "rejected"
        lines.append((label, _by_source(total, words.get(reason, reason), sources)))
    if total := sum(progress.filtered.values()):
        text = _by_source(total, "that the query's own filters let not pass", progress.filtered)
        lines.append(("filtered", text))
    return lines


def shed_line(progress: Progress) -> list[tuple[str, str]]:
    """Probes that were skipped for want of CPU, in all cells since they began, if there are any."""
    told = [cell.overload for cell in progress.cells if cell.overload.get("skipped")]
    skipped = sum(each["skipped"] for each in told)
    lost = sum(each["lost"]["results"] for each in told)
    if not skipped:
        return []
    return [("shed", f"{count(skipped, 'probe')} skipped, about {short(lost)} results lost")]


def _by_source(total: int, what: str, sources: Mapping[str, int]) -> str:
    each = ", ".join(f"{source} {number:,}" for source, number in sources.items() if number)
    return f"{count(total, 'row')} {what}{f'; {each}' if each else ''}"


def show_summary(
    console: Console, progress: Progress, seconds: float, framed: bool, *more: tuple[str, str]
) -> None:
    """Print the summary."""
    lines = [line for line in (*summary(progress, seconds), *more) if line[1]]
    if not framed:
        for label, text in lines:
            console.print(f"{label:<12}{text}", markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    title, colour = "summary", _ACCENT
    if isinstance(progress.end, Failure):
        title, colour = "failed", "red"
        table.add_row(Text("error", style="bold red"), Text(progress.end.reason, style="bold"))
    for label, text in lines:
        table.add_row(Text(label, style="dim"), Text(text))
    width = min(console.width, _WIDEST)
    console.print(Panel(table, title=title, title_align="left", border_style=colour, width=width))


def _line(batches: Sequence[Batch], results: int) -> str:
    """Micro-batches in one line: all numbers are their own, but for the last, which says so."""
    last = batches[-1]
    rows = sum(sum(batch.rows.values()) for batch in batches)
    seconds = sum(batch.seconds for batch in batches)
    rate = rows / seconds if seconds > 0 else 0.0
    numbers = f"{last.batch}" if len(batches) == 1 else f"{batches[0].batch}-{last.batch}"
    parts = [
        f"batch {numbers:>5}: {rows:>9,} rows in {span(seconds):>7}",
        f"{short(rate):>6} rows/s",
        f"{sum(batch.results for batch in batches):>9,} results",
    ]
    reasons: Counter[str] = Counter()
    for batch in batches:
        for each in batch.dropped.values():
            reasons.update(each)
    parts += [f"{number:,} {reason}" for reason, number in reasons.items() if number]
    if filtered := sum(sum(batch.filtered.values()) for batch in batches):
        parts.append(f"{filtered:,} filtered")
    parts += [f"{name} refreshed" for batch in batches for name in batch.refreshed]
    parts += [f"WAITING FOR {name}" for name in last.silent]
    if running_short := shortage(cell.overload for cell in last.cells):
        parts.append(f"SHORT OF CPU {running_short}")
    return f"{', '.join(parts)}; state {size(last.state_bytes)}; {results:,} results in all"

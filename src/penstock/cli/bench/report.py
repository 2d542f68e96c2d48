"""The table of ``penstock bench engine``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table

from penstock.cli.bench.engine_run import FILLING
from penstock.cli.bench.feedback_gain import feedback_gains

if TYPE_CHECKING:
    from penstock.cli.bench.engine_bench import Configuration, Offline

COLUMNS: tuple[tuple[str, Literal["left", "right"]], ...] = (
    ("plan", "left"),
    ("batch", "right"),
    ("M tuples/s", "right"),
    ("÷DuckDB", "right"),
    ("µs/push", "right"),
    ("state MB", "right"),
    ("÷DuckDB", "right"),
    ("peak MB", "right"),
    ("÷DuckDB", "right"),
    ("made/tuple", "right"),
    ("results", "right"),
)
WIDTH = 108
NOTES = """\
Rates are per CPU second, the median of interleaved rounds. DuckDB has the whole input in one query,
on one thread; its state is what its process grows by. Peaks are of whole processes. made/tuple is
the number of intermediate results. Batches below 10,000 are measured for a while after the windows
are full: their results are fewer. All results were counted against DuckDB's."""


def print_report(configurations: Sequence[Configuration], offline: Mapping[str, Offline]) -> None:
    """One table for each workload; DuckDB is its first line."""
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)  # A number cut short is worse than a wrapped line.
    for other in offline.values():
        own = [c for c in configurations if c.workload is other.workload]
        console.print(_table(other, own))
        for line in feedback_gains(own):
            console.print(line, soft_wrap=True)
        console.print()
    console.print(NOTES, style="dim")


def markdown(configurations: Sequence[Configuration], offline: Mapping[str, Offline]) -> str:
    """One line for each workload and plan: small batches by µs, large ones by their rates."""
    batches = list(dict.fromkeys(c.batch for c in configurations))
    headings = [f"{b:,}: {'µs/push' if b < FILLING else 'M tuples/s'}" for b in batches]
    lines = [["", "plan", *headings, "state MB", "peak MB"]]
    lines.append(["---", "---", *("---:" for _ in lines[0][2:])])
    for other in offline.values():
        rate = f"{_number(other.tuples_per_second / 1e6)} (1)"
        rates = ["" if b < FILLING else rate for b in batches]
        sizes = [f"{_megabytes(n)} (1)" for n in (other.growth_bytes, other.peak_bytes)]
        lines.append([f"**{other.workload.name}**", "DuckDB offline", *rates, *sizes])
        mine = [c for c in configurations if c.workload is other.workload]
        for name in dict.fromkeys(c.name for c in mine):
            plan = [c for c in mine if c.name == name]
            cells = [_cell(c, other) for c in plan]
            state = max(c.largest("state_bytes") for c in plan)
            peak = max(c.largest("peak_bytes") for c in plan)
            cells.append(f"{_megabytes(state)} ({_number(state / other.growth_bytes)})")
            cells.append(f"{_megabytes(peak)} ({_number(peak / other.peak_bytes)})")
            notation = plan[0].plan.replace("|", "\\|")
            lines.append(["", f"{name} `{notation}`", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(configuration: Configuration, offline: Offline) -> str:
    if configuration.batch < FILLING:
        return f"{configuration.push_us:,.0f}"
    rate = configuration.tuples_per_second
    return f"{_number(rate / 1e6)} ({_number(rate / offline.tuples_per_second)})"


def _table(offline: Offline, configurations: Sequence[Configuration]) -> Table:
    workload = offline.workload
    form, source = offline.best
    names = {configuration.name for configuration in configurations}
    table = Table(
        title=f"[bold]{workload.name}[/]  {workload.about}\n"
        f"{len(workload.streams)} × {workload.rows:,} tuples, windows of {workload.window:,}; "
        + ", ".join(f"{n}: {workload.plans[n]}" for n in workload.plans if n in names)
        + f"\nDuckDB: windows by {form}, {source} tables",
        title_style="",
        title_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for heading, justify in COLUMNS:
        table.add_column(heading, justify=justify, no_wrap=True)
    table.add_row(
        "DuckDB",
        "all",
        _number(offline.tuples_per_second / 1e6),
        "1.00",
        "",
        _megabytes(offline.growth_bytes),
        "1.00",
        _megabytes(offline.peak_bytes),
        "1.00",
        "",
        f"{offline.results:,}",
        style="dim",
    )
    for number, configuration in enumerate(configurations):
        rate = configuration.tuples_per_second
        state, peak = configuration.largest("state_bytes"), configuration.largest("peak_bytes")
        first = number == 0 or configurations[number - 1].name != configuration.name
        measured = configuration.rounds[-1]
        table.add_row(
            configuration.name if first else "",
            f"{configuration.batch:,}",
            _number(rate / 1e6),
            _number(rate / offline.tuples_per_second),
            f"{configuration.push_us:,.0f}",
            _megabytes(state),
            _number(state / offline.growth_bytes),
            _megabytes(peak),
            _number(peak / offline.peak_bytes),
            f"{measured['intermediates_per_tuple']:.2f}",
            f"{measured['results']:,}",
        )
    return table


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"


def _number(value: float) -> str:
    """Three digits that matter."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 0.095:
        return f"{value:.2f}"
    return f"{value:.3f}" if value >= 0.0095 else f"{value:.4f}"

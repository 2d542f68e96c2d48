"""The peers in one Markdown table, with what one has to know to read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import penstock
from penstock.cli.bench.machine import processor

if TYPE_CHECKING:
    from penstock_studies.peers.peers_bench import Line, Settings

_HEADINGS = (
    "",
    "engine",
    "order",
    "CPU s",
    "÷ Penstock",
    "rows/s",
    "start CPU s",
    "peak MB",
    "state",
    "results",
)
OWN = ("penstock", "written")
"""The line that others are compared with: the query as it stands."""


def table(lines: Sequence[Line]) -> str:
    """One line for each case, peer and variant."""
    rows = [list(_HEADINGS), ["---"] * 3 + ["---:"] * (len(_HEADINGS) - 3)]
    last = None
    for line in lines:
        name = "" if line.case.name == last else f"**{line.case.name}**"
        last = line.case.name
        rows.append([name, line.peer.title, line.variant, *_figures(line, lines)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def report(lines: Sequence[Line], settings: Settings, day: str) -> str:
    """The table, the cases, the versions and the notes, as a page."""
    cases = [
        f"- **{case.name}**: {case.about}. {len(case.workload.streams)} × "
        f"{case.workload.rows:,} tuples, windows of {case.workload.window:,}."
        for case in settings.cases
    ]
    notes = [f"- {peer.title}: {peer.note}." for peer in settings.peers if peer.note]
    bounds = settings.bounds
    return "\n".join(
        [
            table(lines),
            "",
            *cases,
            "",
            "CPU seconds are those of the whole process tree from the first row read to the last "
            "result, without *start*: loading, compiling, starting a JVM, and a first join of a "
            "few thousand rows. Rows per second are input rows on the wall clock. Peaks are of "
            "the whole tree. State is what the engine itself tells, for Penstock the largest "
            "that was seen, for DataFusion the last. *written* is the query as it stands, "
            "*better* the order (for Penstock the plan) of somebody who knows the data. Results "
            "were counted and their ids summed, and compared with DuckDB's; ≠ marks a wrong "
            "answer, ? one with nothing to compare.",
            "",
            *notes,
            "",
            f"{day}, {processor()}, {os.cpu_count()} cores, {settings.cores} thread(s) each, "
            f"rounds: {settings.rounds}, at most {bounds.seconds:.0f} s and "
            f"{bounds.memory / 1e9:.3g} GB per run. Versions: {', '.join(_versions(settings))}.",
            "",
        ]
    )


def ratio(line: Line, lines: Sequence[Line]) -> float | None:
    """CPU seconds as a multiple of Penstock's on the same case; None if either has none."""
    for other in lines:
        if other.case is line.case and (other.peer.name, other.variant) == OWN:
            if other.ended is None and line.ended is None:
                return line.cpu / max(other.cpu, 0.01)
            break
    return None


def _figures(line: Line, lines: Sequence[Line]) -> list[str]:
    stopped = line.ended
    if stopped is not None:
        reason = " ".join(stopped.reason.replace("|", "\\|").split())
        spent = f"> {stopped.cpu:,.0f}" if stopped.cpu >= 1 else ""
        peak = f"> {stopped.peak_bytes / 1e6:,.0f}" if stopped.peak_bytes else ""
        return [spent, "", "", "", peak, "", reason]
    times = ratio(line, lines)
    results = f"{line.told('results'):,}"
    if line.wrong:
        results = f"≠ {line.wrong}"
    elif not line.checked:
        results += " ?"
    return [
        f"{line.cpu:,.2f}" if line.cpu < 10 else f"{line.cpu:,.0f}",
        "" if times is None else f"{times:,.2g}" if times < 10 else f"{times:,.0f}",
        f"{line.rows_per_second:,.0f}",
        f"{line.start_cpu:.1f}",
        f"{line.peak_bytes / 1e6:,.0f}",
        _state(line),
        results,
    ]


def _state(line: Line) -> str:
    size = line.told("state_bytes")
    return "" if size is None else f"{size / 1e6:,.1f} MB"


def _versions(settings: Settings) -> list[str]:
    versions = [f"penstock {penstock.__version__}"]
    if any(peer.name.endswith("spark") for peer in settings.peers):
        from importlib.metadata import version

        versions.append(f"pyspark {version('pyspark')}")
    for peer in settings.peers:
        if peer.requirements is not None and peer.requirements.is_file():
            first, *_ = peer.requirements.read_text().splitlines()
            versions.append(first.replace("==", " "))
    return versions

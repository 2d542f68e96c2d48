"""The page of results: one table of verdicts, then a section for each experiment.

The page is a function of the outcomes: nothing in it is written by hand, so it cannot say what was
not measured. Experiments with no rows are named as not run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock_studies.lab.experiment import Cell, Rows
from penstock_studies.lab.runner import Outcome

MOST_ROWS = 60
"""In a table of the page; the files have all."""


def report(outcomes: Sequence[Outcome], images: Path | None, command: str) -> str:
    """The page as Markdown; ``images`` is the folder of the plots, seen from the page."""
    run = [each for each in outcomes if each.measured]
    lines = ["# Results", ""]
    lines += _origin(run, command)
    lines += [
        "",
        "| experiment | the paper's claim | measured | the shape |",
        "| --- | --- | --- | --- |",
    ]
    for each in run:
        experiment, verdict = each.experiment, each.experiment.judge(each.rows)
        lines.append(
            f"| [{experiment.paper}, {experiment.figure}](#{experiment.name}) | "
            f"{_inline(experiment.claim)} | {_inline(verdict.measured)} | **{verdict.standing}** |"
        )
    left_out = [each.experiment for each in outcomes if not each.measured]
    if left_out:
        names = ", ".join(f"{each.paper} {each.figure} (`{each.name}`)" for each in left_out)
        lines += ["", f"Not run: {names}."]
    for each in run:
        lines += ["", *_section(each, images)]
    return "\n".join(lines) + "\n"


def _origin(run: Sequence[Outcome], command: str) -> list[str]:
    points = [point for each in run for point in each.measured]
    if not points:
        return ["Nothing has been measured yet."]
    dates = sorted({point.date[:10] for point in points})
    machines = list(dict.fromkeys(_machine(point.machine) for point in points))
    codes = sorted({point.code for point in points})
    seeds = sorted({point.seed for point in points})
    seconds = {(p.function, str(p.parameters)): p.seconds for p in points}
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return [
        f"Written by `{command}`; do not edit. {when}, seed {', '.join(map(str, seeds))}, code "
        f"{', '.join(codes)}, {sum(seconds.values()) / 60:.0f} minutes of measuring.",
        "",
        *machines,
        "",
        "CPU times are of this machine and "
        "vary by a tenth and more from run to run; counts do not vary. Where nothing else is said, "
        "memory is the bytes that states hold.",
    ]


def _machine(machine: dict[str, str]) -> str:
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("penstock", "numpy", "numba", "pyarrow")
    )
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
        f"{machine['system']}, Python {machine['python']}; {versions}."
    )


def _section(outcome: Outcome, images: Path | None) -> list[str]:
    experiment, rows = outcome.experiment, outcome.rows
    verdict = experiment.judge(rows)
    lines = [
        f'<a id="{experiment.name}"></a>',
        "",
        f"## {experiment.paper}, {experiment.figure}: {experiment.title}",
        "",
        f"{experiment.setting} `penstock experiment {experiment.name}`",
        "",
        f"- **Paper:** {experiment.claim}",
        f"- **Measured:** {verdict.measured}",
        f"- **The shape {verdict.standing}.**"
        if verdict.standing != "not measured"
        else "- **Not measured.**",
    ]
    lines += [f"- {label} is missing: {reason}." for label, reason in outcome.failures.items()]
    if images is not None:
        file = (images / f"{experiment.name}.svg").as_posix()
        lines += ["", f"![{experiment.figure} of {experiment.paper}, measured]({file})"]
    table = experiment.table(rows)
    if table:
        lines += [
            "",
            '<details markdown="1"><summary>Numbers</summary>',
            "",
            *markdown_table(table[:MOST_ROWS]),
        ]
        if len(table) > MOST_ROWS:
            lines += ["", f"… and {len(table) - MOST_ROWS} rows more in the data file."]
        lines += ["", "</details>"]
    return lines


def markdown_table(rows: Rows) -> list[str]:
    """Numbers to the right; a column that is missing in a row, and None, are a dash."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    right = [all(isinstance(row.get(name), int | float | None) for row in rows) for name in columns]
    return [
        _line(columns),
        _line("---:" if each else "---" for each in right),
        *(_line(_text(row.get(name)) for name in columns) for row in rows),
    ]


def relative_to_page(folder: Path, page: Path) -> Path:
    """``folder`` as a link from ``page``."""
    return Path(os.path.relpath(folder, page.parent))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_inline, cells))} |"


def _inline(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _text(cell: Cell) -> str:
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else cell

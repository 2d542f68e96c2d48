"""Section VI of the JIT paper: CPU time and peak memory of JIT against no feedback (REF).

The setting is the paper's: cliques of uniform values, bushy and left-deep plans (Table II), the
parameters of Table III, varied one at a time as in Figures 10 to 17. Run in it are the literal form
(nested loops, tuple at a time) as published, with the rule that makes it exact, with detection by
Bloom filter, at level 1 and for ∅ alone; and the engine, with nested loops and with hash joins.

Ratios are of REF to the run at hand, for CPU seconds and comparisons; memory is what is saved of
the peak of state bytes. The paper's nested loops compared value by value; here one comparison of a
whole column costs a fraction of a nanosecond per value beside some microseconds for the call, so
CPU seconds of the literal form show the work per partial result, and *comparisons* show what the
paper's CPU time shows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock_studies.jit.measured_run import (
    ENGINE,
    LITERAL,
    MeasuredRun,
    run_engine,
    run_literal,
)
from penstock_studies.jit.setting import BUSHY, FIGURES, LEFT_DEEP, Setting, points_of
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "JIT, section VI: CPU and memory with demand feedback against without"

HEADINGS = [
    "system",
    "feedback",
    "CPU s",
    "REF/CPU",
    "comparisons",
    "REF/comp.",
    "partial results",
    "state kB",
    "saved %",
    "results",
]


@dataclass(frozen=True)
class Row:
    """A run beside the run of the same system without feedback."""

    setting: Setting
    run: MeasuredRun
    reference: MeasuredRun

    @property
    def cpu_ratio(self) -> float | None:
        """How many times less CPU."""
        return self._ratio(self.reference.cpu, self.run.cpu)

    @property
    def comparison_ratio(self) -> float | None:
        """How many times fewer comparisons."""
        return self._ratio(self.reference.comparisons, self.run.comparisons)

    @property
    def memory_saved(self) -> float | None:
        """The share of the peak that is not needed."""
        ratio = self._ratio(self.run.memory, self.reference.memory)
        return None if ratio is None else 1 - ratio

    def _ratio(self, above: float | None, below: float | None) -> float | None:
        is_fair = self.run.is_complete and self.reference.is_complete
        return above / below if is_fair and above is not None and below else None

    def cells(self) -> list[Cell]:
        run, saved = self.run, self.memory_saved
        return [
            run.system,
            run.feedback + ("" if run.is_complete else " (stopped)"),
            run.cpu,
            self.cpu_ratio,
            run.comparisons,
            self.comparison_ratio,
            run.partial_results,
            round(run.memory / 1000),
            None if saved is None else 100 * saved,
            run.results,
        ]


def rows_of(
    setting: Setting, hours: float, seed: int, batch: float = 10, seconds: float = 120
) -> Iterator[Row]:
    """All systems on one setting; each run gets so many CPU ``seconds`` at most."""
    tuples = setting.tuples(hours, seed)
    run_literal(setting, tuples[:100], "jit", seconds)  # Imports and caches are not the subject.
    literal = {form: run_literal(setting, tuples, form, seconds) for form in LITERAL}
    for feedback, run in literal.items():
        of_paper = LITERAL[feedback].leaves_with == "latest"
        yield Row(setting, run, literal["off, as published" if of_paper else "off"])
    for join in ("nested-loops", "hash"):
        run_engine(setting, tuples[:100], "jit", join, batch, seconds)
        reference = run_engine(setting, tuples, "off", join, batch, seconds)
        for feedback in ENGINE:
            is_off = feedback == "off"
            run = (
                reference if is_off else run_engine(setting, tuples, feedback, join, batch, seconds)
            )
            yield Row(setting, run, reference)


def verdict(rows: Sequence[Row]) -> str:
    """The paper's claim, what was measured for one setting, and why they differ."""
    found = {(row.run.system, row.run.feedback): row for row in rows}
    published = found["literal, nested loops", "as published"]
    exact = found["literal, nested loops", "jit"]
    loops, hashed = found["engine, nested loops", "jit"], found["engine, hash", "jit"]
    results = published.reference.results
    lost = f"{results - published.run.results} of {results} results lost"
    if not results:
        lost = "no results to lose, as there are none in this setting"
    if rows[0].setting.shape == "bushy":
        claim = "more than 10 times less CPU and up to 62 % less memory"
        why = (
            "As published, both inputs of a join sleep for want of each other, which saves most "
            "but loses results that need both. With the rule one of two sub-tuples that agree "
            "stays awake, and its partial results are made."
        )
    else:
        claim = "a clear advantage, growing with w and λ (no number is given)"
        why = (
            "Here the opposite inputs are streams, which never sleep: the rule costs nothing, and "
            "what is not made below is not stored above either."
        )
    return "\n".join(
        [
            f"Paper: {claim}.",
            f"Measured, literal as published: {_words(published)}; {lost}.",
            f"Literal with the rule: {_words(exact)}.",
            f"Engine: nested loops {_words(loops)}; hash joins {_words(hashed)}.",
            f"Why: {why} Under nested loops every partial result scans a whole state; with hash "
            "joins one that finds no partner costs little, so there is less to save.",
        ]
    )


def _words(row: Row) -> str:
    comparisons, cpu, saved = row.comparison_ratio, row.cpu_ratio, row.memory_saved
    if cpu is None or saved is None:
        return "stopped for lack of time"
    counted = [] if comparisons is None else [_times(comparisons, "fewer", "comparisons")]
    memory = f"{100 * abs(saved):.0f} % {'less' if saved >= 0 else 'more'} memory"
    return ", ".join([*counted, _times(cpu, "less", "CPU"), memory])


def _times(ratio: float, less: str, what: str) -> str:
    return f"{ratio:.2g} times {less} {what}" if ratio >= 1 else f"{1 / ratio:.2g} times the {what}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--figure",
        type=int,
        choices=FIGURES,
        help="vary what this figure of the paper varies (default: the default settings)",
    )
    parser.add_argument(
        "--hours", type=float, default=5.0, help="event time of a run (default: 5, as the paper)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="event time of three windows, whatever --hours says"
    )
    parser.add_argument(
        "--batch", type=float, default=10.0, help="seconds of event time per push of the engine"
    )
    parser.add_argument(
        "--seconds", type=float, default=120.0, help="CPU seconds after which a run is stopped"
    )
    parser.add_argument("--seed", type=int, default=1)


def run(options: argparse.Namespace) -> None:
    settings = points_of(options.figure) if options.figure else [BUSHY, LEFT_DEEP]
    print(heading("jit", options.seed))
    for setting in settings:
        hours = 3 * setting.window / 60 if options.quick else options.hours
        rows = list(rows_of(setting, hours, options.seed, options.batch, options.seconds))
        print(f"\n{setting}, {hours:g} hours")
        print(text_table(HEADINGS, [row.cells() for row in rows]))
        print(verdict(rows))

"""``penstock experiment NAME``: runs a figure of a paper, or a study.

``penstock experiment NAME`` measures what a figure or table of a paper shows, draws it with the
same axes and says whether the shape holds; ``all`` does so for all of them, and writes the report.
The studies print tables of their own, with options of their own.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError

STUDIES = {
    "planners": "penstock_studies.planners",
    "sets": "penstock_studies.qualified_sets",
    "model": "penstock_studies.model_check",
    "jit": "penstock_studies.jit.section_vi",
    "feedback": "penstock_studies.feedback_study",
    "drift": "penstock_studies.drift_study",
    "auto": "penstock_studies.auto.study",
    "first-batch": "penstock_studies.first_batch_study",
    "spill": "penstock_studies.spill_study",
    "limits": "penstock_studies.limits_study",
    "pace": "penstock_studies.pace_study",
    "burst": "penstock_studies.overload_burst",
    "cluster": "penstock_studies.cluster_study",
    "spark-burst": "penstock_studies.spark_burst",
}
"""Names of the command line, and modules with ``ABOUT``, ``add_arguments`` and
``run``, which says False if what should hold does not."""
ON_SPARK = ("spark-burst",)
"""Studies that start Spark, whose messages are kept apart from theirs."""
FOLDER = "penstock-results"
INCOMPLETE = 1


def run(name: str, arguments: list[str]) -> int:
    """Run the experiments that ``name`` stands for, or list them; the exit code."""
    if name == "list":
        return _list()
    if name in STUDIES:
        return _study(name, arguments)
    return _figures(name, arguments)


def _list() -> int:
    from penstock_studies.figures.registry import EXPERIMENTS

    print("Figures and tables of the papers:")
    for each in EXPERIMENTS:
        print(f"  {each.name:18}{each.paper}, {each.figure}: {each.title}")
    print("\nStudies, printed as tables:")
    for name, module in STUDIES.items():
        print(f"  {name:18}{_module(module).ABOUT}")
    print("\npenstock experiment all --quick runs all figures and writes a report.")
    print("penstock experiment NAME --help shows the options of one.")
    return 0


def _study(name: str, arguments: list[str]) -> int:
    module = _module(STUDIES[name])
    parser = argparse.ArgumentParser(
        prog=f"penstock experiment {name}",
        description=module.ABOUT,
        epilog=f"example: penstock experiment {name} --seed 2",
    )
    module.add_arguments(parser)
    options = parser.parse_args(arguments)
    if name not in ON_SPARK:
        return INCOMPLETE if module.run(options) is False else 0
    from penstock.cli.run.spark_start import messages_apart

    with messages_apart():
        return INCOMPLETE if module.run(options) is False else 0


def _module(name: str) -> Any:
    return import_module(name)


def _parser(name: str, about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"penstock experiment {name}",
        description=about,
        epilog=f"example: penstock experiment {name} --quick --folder {FOLDER}",
    )
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick",
        dest="scale",
        action="store_const",
        const="quick",
        default="quick",
        help="fewer points and less data: minutes in all (default)",
    )
    scale.add_argument(
        "--full",
        dest="scale",
        action="store_const",
        const="full",
        help="the parameters of the papers: hours in all",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(FOLDER),
        help=f"where measurements are kept (default: {FOLDER})",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="the page to write (default: FOLDER/results.md); plots go to images/results beside it",
    )
    parser.add_argument("--again", action="store_true", help="measure also what was measured")
    parser.add_argument("--no-plots", dest="plots", action="store_false", help="draw nothing")
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="stop a point after so many seconds (default: 600, full: 7200)",
    )
    return parser


def _figures(name: str, arguments: list[str]) -> int:
    from penstock_studies.figures.registry import EXPERIMENTS, find
    from penstock_studies.lab import drawing, runner
    from penstock_studies.lab.code_version import code_version
    from penstock_studies.lab.data_file import write_data
    from penstock_studies.lab.machine import this_machine
    from penstock_studies.lab.report import relative_to_page, report
    from penstock_studies.lab.store import Store

    chosen = find(name)
    about = f"{chosen[0].paper}, {chosen[0].figure}: {chosen[0].title}"
    options = _parser(name, about if len(chosen) == 1 else f"{len(chosen)} experiments").parse_args(
        arguments
    )
    if options.plots:
        drawing.require()
    store = Store(options.folder, code_version())
    bench = runner.Bench(this_machine(), time.monotonic, _today, runner.in_a_process)
    bounds = None if options.seconds is None else runner.Bounds(options.seconds)
    outcomes = runner.run(
        chosen, options.scale, options.seed, store, bench, _tell, bounds, options.again
    )
    page = options.report or options.folder / "results.md"
    images = page.parent / "images" / "results"
    seen = {each.experiment.name: each for each in outcomes}
    everything = [
        seen.get(each.name) or runner.collect(each, options.scale, options.seed, store)
        for each in EXPERIMENTS
    ]
    for outcome in everything:
        if outcome.measured:
            write_data(outcome, options.folder)
            if options.plots:
                chart = outcome.experiment.chart(outcome.rows)
                drawing.draw(chart, images / f"{outcome.experiment.name}.svg")
    links = relative_to_page(images, page) if options.plots else None
    command = f"penstock experiment all --{options.scale}"
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(report(everything, links, command))
    except OSError as error:
        raise PenstockError(f"cannot write {page}: {error.strerror}") from None
    for outcome in outcomes:
        verdict = outcome.experiment.judge(outcome.rows)
        print(
            f"\n{outcome.experiment.paper}, {outcome.experiment.figure}: {outcome.experiment.title}"
        )
        print(f"  paper:    {outcome.experiment.claim}")
        print(f"  measured: {verdict.measured}")
        print(f"  shape:    {verdict.standing}")
        for label, reason in outcome.failures.items():
            print(f"  missing:  {label}: {reason}")
    print(f"\nData in {options.folder}, report in {page}")
    return INCOMPLETE if any(outcome.failures for outcome in outcomes) else 0


def _tell(progress: Any) -> None:
    """One line for each point, on stderr: stdout is for what was found."""
    if progress.state == "running":
        print(
            f"[{progress.number}/{progress.of}] {progress.experiment}: {progress.point} …",
            end="",
            file=sys.stderr,
            flush=True,
        )
        return
    ended = "" if progress.state == "done" else f"failed: {progress.reason}, "
    print(f" {ended}{progress.seconds:.0f} s, {_left(progress.left)}", file=sys.stderr)


def _left(seconds: float) -> str:
    if seconds < 1:
        return "the last one"
    return f"about {seconds:.0f} s left" if seconds < 90 else f"about {seconds / 60:.0f} min left"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

"""What a cluster of your own would carry: the model of the experiment, with options."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from penstock.errors import OptionError
from penstock_studies.figures.cluster import EXPERIMENTS, carried, cluster_points
from penstock_studies.figures.scale import cell_points
from penstock_studies.lab import runner
from penstock_studies.lab.code_version import code_version
from penstock_studies.lab.experiment import Experiment, Point, Scale
from penstock_studies.lab.machine import this_machine
from penstock_studies.lab.store import Store
from penstock_studies.scale.cluster import Cluster
from penstock_studies.text_table import Cell, heading, text_table

ABOUT = "what a cluster would carry, by a model of what is measured here"

OPTIONS = {
    "machines": "machines",
    "cores": "cores of each",
    "gigabits": "of its link, per second and direction",
    "gibibytes": "of its memory",
    "window": "seconds",
    "trigger": "seconds between micro-batches",
    "busy": "of CPU and link, the part that may be used",
    "memory_share": "of the memory, the part that states may use",
    "headroom": "times the measured bytes of a row",
    "host_ns": "CPU time for reading a tuple on Spark",
    "byte_ns": "CPU time for a byte of a copy",
    "batch_seconds": "CPU time of each core for a micro-batch",
}
"""Fields of :class:`~penstock_studies.scale.cluster.Cluster`."""
SHOWN = ("query", "tuples/s", "binds", "by CPU", "by network", "by memory", "rows that fit",
         "copies", "skew")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    for each in fields(Cluster):
        parser.add_argument(
            f"--{each.name.replace('_', '-')}",
            type=type(each.default),
            default=each.default,
            metavar="N",
            help=f"{OPTIONS[each.name]} (default: {each.default:g})",
        )
    parser.add_argument("--full", action="store_true", help="measure more of everything")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("penstock-results"),
        help="where measurements are kept, those of the figures as well (penstock-results)",
    )


def run(options: argparse.Namespace) -> bool:
    cluster = cluster_of(options)
    scale: Scale = "full" if options.full else "quick"
    bench = runner.Bench(this_machine(), time.monotonic, _today, runner.in_a_process)
    store = Store(options.folder, code_version())
    (outcome,) = runner.run([experiment(cluster)], scale, options.seed, store, bench, _tell)
    print(heading("cluster", options.seed))
    print("\nAssumed, and measured elsewhere")
    print(
        text_table(
            ["", "", ""],
            [[each, getattr(cluster, each), about] for each, about in OPTIONS.items()],
        )
    )
    print("\nExtrapolated, not measured: tuples per second over all streams")
    lines: list[list[Cell]] = [
        [line[name] for name in SHOWN] for line in carried(outcome.rows, cluster)
    ]
    print(text_table(SHOWN, lines))
    for label, reason in outcome.failures.items():
        print(f"missing: {label}: {reason}", file=sys.stderr)
    return not outcome.failures


def cluster_of(options: argparse.Namespace) -> Cluster:
    """The cluster that was asked for."""
    given = {each.name: getattr(options, each.name) for each in fields(Cluster)}
    for name, value in given.items():
        if not value > 0:
            raise OptionError(f"--{name.replace('_', '-')} must be more than 0, not {value:g}")
    for name in ("busy", "memory_share"):
        if given[name] > 1:
            raise OptionError(f"--{name.replace('_', '-')} is at most 1, not {given[name]:g}")
    return Cluster(**given)


def experiment(cluster: Cluster) -> Experiment:
    """That of the figure, with as many cells as ``cluster`` has workers."""
    (figure,) = EXPERIMENTS

    def points(scale: Scale) -> Sequence[Point]:
        known = cell_points(scale)
        wanted = str(cluster.workers)
        if wanted in str(known[0].parameters["cells"]).split():
            return cluster_points(scale)
        own = [
            replace(each, parameters={**each.parameters, "cells": wanted}, seconds=each.seconds / 5)
            for each in known
        ]
        return [*(each for each in cluster_points(scale) if each not in known), *own]

    return replace(figure, points=points)


def _tell(progress: runner.Progress) -> None:
    if progress.state != "running":
        print(
            f"[{progress.number}/{progress.of}] {progress.point}: {progress.seconds:.0f} s "
            f"{progress.reason}",
            file=sys.stderr,
        )


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")

"""``penstock warm-up``: compile the kernels now instead of on the first use."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "warm-up",
        help="compile the kernels now, for example while an image is built",
        description="Compile the engine's kernels and keep them on disk, so that the first query "
        "starts at once. Set NUMBA_CACHE_DIR to choose the place. With --spark, also keep the "
        "classes that Java loads for Spark. That takes a minute and 200 MB of the user's cache "
        "folder, and saves a streaming query several CPU seconds from then on.",
        epilog="example: penstock warm-up --spark",
    )
    parser.add_argument("--spark", action="store_true", help="keep Java's classes as well")
    parser.add_argument(
        "--first", action="store_true", help="only the kernels that a plain join needs"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.machine.compile_ahead import compile_ahead
    from penstock.machine.warm_up import warm_up

    start = time.perf_counter()
    compiled = compile_ahead(options.first, _show if sys.stderr.isatty() else None)
    if not options.first:
        compiled += warm_up()
    if compiled:
        seconds = time.perf_counter() - start
        print(f"penstock: compiled {compiled} kernels in {seconds:.0f} s", file=sys.stderr)
    else:
        print("penstock: all kernels were compiled before", file=sys.stderr)
    if options.spark:
        _keep_classes()
    return 0


def _keep_classes() -> None:
    from penstock.cli.run.spark_start import need_spark, sign_of_life

    need_spark()
    from rich.console import Console

    from penstock.spark.start.class_archive import make_archive

    with sign_of_life(Console(stderr=True, highlight=False), "penstock: running Spark once"):
        archive = make_archive()
    said = f"Java's classes are in {archive}" if archive else "Java's classes were kept before"
    print(f"penstock: {said}", file=sys.stderr)


def _show(share: float, seconds: float) -> None:
    end = "\r" if share < 1 else "\r\033[K"
    said = f"compiling kernels: {100 * share:.0f} %, about {seconds:.0f} s left"
    print(f"\033[Kpenstock: {said}", end=end, file=sys.stderr, flush=True)

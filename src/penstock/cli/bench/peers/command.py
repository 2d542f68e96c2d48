"""``penstock bench peers``: the command line."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.errors import OptionError, PenstockError


def add_parser(names: Any) -> None:
    bench = names.add_parser(
        "peers",
        help="the same joins on Flink, Spark, DataFusion, Pathway, Bytewax, DuckDB and Polars",
        description="The same joins on Penstock and on other engines, each in an environment of "
        "its own, which is made when it is first needed (3 GB in all). Runs are bounded and come "
        "one after another; what was measured is kept, so a run that was stopped goes on. Writes "
        "peers.md, peers.png and peers.json.",
        epilog="example: penstock bench peers --quick --peers penstock,datafusion,duckdb",
    )
    bench.add_argument(
        "--cases", metavar="C,…", help="some of W1, W2, star, chain, skew, pair (default: all)"
    )
    bench.add_argument(
        "--peers",
        metavar="P,…",
        help="some of duckdb, polars, penstock, datafusion, pathway, bytewax, flink, "
        "penstock-spark, spark (default: all)",
    )
    bench.add_argument("--quick", action="store_true", help="inputs and windows 10 times smaller")
    bench.add_argument(
        "--shrink", type=float, metavar="X", help="inputs and windows X times smaller"
    )
    bench.add_argument("--rounds", type=int, default=1, metavar="N", help="rounds (default: 1)")
    bench.add_argument("--cores", type=int, default=1, metavar="N", help="threads (default: 1)")
    bench.add_argument(
        "--seconds", type=float, default=300.0, metavar="S", help="time of a run (default: 300)"
    )
    bench.add_argument(
        "--memory", type=float, default=8.0, metavar="GB", help="memory of a run (default: 8)"
    )
    bench.add_argument(
        "--output", default=".", metavar="DIR", help="where table and plot go (default: here)"
    )
    bench.add_argument(
        "--cache",
        metavar="DIR",
        help="where environments and measurements are kept (default: the user's cache)",
    )
    bench.add_argument("--fresh", action="store_true", help="measure again what is known")
    bench.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    _check_system()
    from penstock.cli.bench.peers.peers_bench import PeersBench, Settings, say, to_json
    from penstock.cli.bench.peers.table import report

    settings = Settings.of(
        cache=Path(options.cache) if options.cache else _cache_folder(),
        cases=_names(options.cases),
        peers=_names(options.peers),
        rounds=options.rounds,
        cores=options.cores,
        seconds=options.seconds,
        memory_gb=options.memory,
        shrink=options.shrink,
        quick=options.quick,
        fresh=options.fresh,
    )
    output = Path(options.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        settings.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {error.filename}: {error.strerror}") from None
    lines = PeersBench(settings).run()
    text = report(lines, settings, f"{datetime.now(UTC):%Y-%m-%d}")
    (output / "peers.md").write_text(text)
    (output / "peers.json").write_text(to_json(lines) + "\n")
    print(text, end="")
    try:
        from penstock.cli.bench.peers.plot import plot

        plot(lines, output / "peers.png")
    except ImportError:
        say("no plot, as matplotlib is not installed: pip install 'penstock[experiments]'")
    wrong = [line for line in lines if line.wrong]
    for line in wrong:
        say(f"wrong answer: {line.case.name}, {line.peer.title}, {line.variant}: {line.wrong}")
    return 1 if wrong else 0


def _check_system() -> None:
    """What would fail after minutes is found at once."""
    try:
        from penstock.spark import process_tree
    except ImportError:
        raise PenstockError("Spark is not installed: pip install 'penstock[spark]'") from None
    if not process_tree.is_known():
        raise PenstockError("this benchmark reads CPU seconds from /proc, which is not here")


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path.home() / ".cache") / "penstock" / "peers"


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))

"""``penstock bench peers``: the command line; what it runs is ``penstock_studies.peers``."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.cli.studies import from_studies


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
    code: int = from_studies("peers.command").run(options)
    return code

"""``penstock attack``: hostile input by the hundred thousand, each in a process that may die."""

from __future__ import annotations

import argparse
from typing import Any

EPILOG = """\
example: penstock attack checkpoints --count 100000
         penstock attack signals --count 500             some 30 interrupts each
         penstock attack memory --count 200              some 300 failures each
         penstock attack arrow --from 4711 --count 1     the one that was reported
         penstock attack latency --count 200             how soon signals are answered

Every attack is a function of its number. What counts as found: a process that ends by a signal, an
error that is not Penstock's own, a wrong answer."""
FOUND = 1


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "attack",
        help="attack the engine with damaged input and with signals",
        description="Push mutated Arrow batches, restore mutated checkpoints whose checksums are "
        "right again, interrupt random queries by real signals at random moments, or let each "
        "request for memory fail, and compare their answers with an oracle; tell what was "
        "refused, and what was not survived. Or tell how long signals take to be answered.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "kind", choices=("arrow", "checkpoints", "latency", "memory", "signals"), help="by what"
    )
    parser.add_argument(
        "--count", type=int, default=10_000, metavar="N", help="attacks (default: %(default)s)"
    )
    parser.add_argument(
        "--from",
        type=int,
        default=0,
        dest="start",
        metavar="N",
        help="number of the first (default: %(default)s)",
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=8,
        metavar="GIB",
        help="address space of a process, so that none takes all (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.kind == "latency":
        return _latency(options.count)
    from penstock.testing.hostile import attack_all

    numbers = range(options.start, options.start + options.count)
    outcomes, findings = attack_all(options.kind, numbers, options.memory << 30, print)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{options.kind}: {told or 'none'}; {findings:,} findings")
    return FOUND if findings else 0


def _latency(count: int) -> int:
    """A line for each kind of push: milliseconds from when a signal is due to its exception."""
    import statistics

    from penstock.testing.latency import LOADS, latencies

    print(f"{'milliseconds until a signal is answered':<42}{'median':>8}{'99 %':>8}{'worst':>8}")
    for name in LOADS:
        found = sorted(1000 * each for each in latencies(name, count))
        late = found[min(len(found) - 1, int(0.99 * len(found)))]
        print(f"{name:<42}{statistics.median(found):>8.1f}{late:>8.1f}{found[-1]:>8.1f}")
    return 0

"""What demand feedback gives a plan, in words: its speed and its state against the plan without it.

The speed is that of all pushes, by CPU time, from the first on; with it goes the spread over
rounds, each against the same round of the other. The median push tells how it is once windows are
full: the first pushes get memory that is new to the process, which may take as long as a hundred.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.cli.bench.engine_bench import Configuration


def feedback_gains(configurations: Sequence[Configuration]) -> Iterator[str]:
    """A line for each plan that was measured with and without."""
    known = {(c.workload.name, c.name, c.batch): c for c in configurations}
    for each in configurations:
        shape, _, feedback = each.name.partition("+")
        plain = known.get((each.workload.name, shape, each.batch))
        if feedback and plain is not None:
            yield (
                f"{each.workload.name}, batches of {each.batch:,}: "
                f"{each.name} against {shape}: {_gain(plain, each)}"
            )


def _gain(plain: Configuration, each: Configuration) -> str:
    speed = each.tuples_per_second / plain.tuples_per_second
    rounds = [
        (other["cpu_seconds"] / other["tuples"]) / (mine["cpu_seconds"] / mine["tuples"])
        for other, mine in zip(plain.rounds, each.rounds, strict=True)
    ]
    push = _median_push(plain) / _median_push(each)
    state = each.largest("state_bytes") / plain.largest("state_bytes")
    return (
        f"{speed:.2f} times the speed (rounds: {min(rounds):.2f} to {max(rounds):.2f}), "
        f"median push {push:.2f}; {state:.2f} of the state"
    )


def _median_push(configuration: Configuration) -> float:
    return float(statistics.median(each["push_p50_us"] for each in configuration.rounds))

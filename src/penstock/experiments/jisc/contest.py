"""Several engines take in the same pushes, in turn, and the CPU seconds of each are added up.

Taking turns push by push lets whatever else the machine does fall on all of them alike, so ratios
can be trusted where seconds cannot. Answers are compared: a contest with a wrong answer is none.
What is there when it begins is no garbage: to look through all that is loaded takes Python as long
as many pushes, and would fall on one engine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping

import penstock
from penstock.experiments.jisc.setting import Batches

Between = Callable[[str, penstock.Engine, int], None]
"""What happens to an engine before a push: its name, itself, and the number of the push."""


def contest(
    engines: Mapping[str, penstock.Engine],
    pushes: Iterable[Batches],
    between: Between | None = None,
) -> dict[str, float]:
    """CPU seconds that each engine takes for ``pushes``, and for what ``between`` does to it."""
    gc.collect()
    gc.freeze()
    seconds = dict.fromkeys(engines, 0.0)
    order = list(engines)
    for number, batches in enumerate(pushes):
        results = set()
        order.append(order.pop(0))  # Nobody is always the first to touch the new rows.
        for name in order:
            engine = engines[name]
            started = time.process_time()
            if between is not None:
                between(name, engine, number)
            results.add(engine.push(batches).num_rows)
            seconds[name] += time.process_time() - started
        if len(results) != 1:
            raise penstock.PenstockError(f"push {number}: engines disagree, {sorted(results)}")
    return seconds

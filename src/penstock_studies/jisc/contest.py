"""Several engines take in the same pushes, in turn, and the CPU seconds of each are added up.

Taking turns push by push lets whatever else the machine does fall on all of them alike, so ratios
can be trusted where seconds cannot. The order is another one each time: whoever follows an engine
that needs a lot of memory pays for getting it anew, and in a fixed order that would always be the
same one (with 20 joins it took a third longer than its twin). Engines do the same in each round, so
of several rounds the least time of each push counts (:func:`least`): what disturbs only makes
things longer. Answers are compared: a contest with a wrong answer is none. What is there when it
begins is no garbage: to look through all that is loaded takes Python as long as many pushes, and
would fall on one engine.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import penstock
from penstock_studies.jisc.setting import Batches

Spent = dict[str, NDArray[np.float64]]
"""CPU seconds by engine, for each push."""
Between = Callable[[str, penstock.Engine, int], None]
"""What happens to an engine before a push: its name, itself, and the number of the push."""

Watch = Callable[[str, penstock.Engine], None]
Wanted = Callable[[str, int], str | None]
"""The plan that an engine is to run, by its name and the number of the push; None: any."""


def contest(
    engines: Mapping[str, penstock.Engine],
    pushes: Iterable[Batches],
    between: Between | None = None,
    seed: int = 0,
    watch: Watch | None = None,
    wanted: Wanted | None = None,
) -> Spent:
    """CPU seconds that each engine takes for each of ``pushes``, and for what ``between`` does to
    it before.

    ``seed`` is that of the order in which they take turns. ``watch`` looks at each engine after a
    push, which does not count. An engine that does not run the plan that is ``wanted`` of it is an
    error: its time would be that of another plan.
    """
    gc.collect()
    gc.freeze()
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    chance, names = np.random.default_rng(seed), list(engines)
    for number, batches in enumerate(pushes):
        results = set()
        for place in chance.permutation(len(names)).tolist():
            name, engine = names[place], engines[names[place]]
            started = time.process_time()
            if between is not None:
                between(name, engine, number)
            results.add(engine.push(batches).num_rows)
            seconds[name].append(time.process_time() - started)
            if wanted is not None:
                must_run(wanted(name, number), name, engine)
            if watch is not None:
                watch(name, engine)
        if len(results) != 1:
            raise penstock.PenstockError(f"push {number}: engines disagree, {sorted(results)}")
    return {name: np.array(spent) for name, spent in seconds.items()}


def must_run(plan: str | None, name: str, engine: penstock.Engine) -> None:
    """Raise an error if the ``engine`` of that name runs another plan."""
    runs = str(engine.running_plan)
    if plan is not None and runs != plan:
        raise penstock.PenstockError(f"{name} runs {runs}, and not {plan}")


def least(rounds: Sequence[Spent]) -> dict[str, float]:
    """CPU seconds of each engine, with the least of all ``rounds`` for each push."""
    return {
        name: float(np.min([each[name] for each in rounds], axis=0).sum()) for name in rounds[0]
    }


def ordinary(rounds: Sequence[Spent], standard: str) -> dict[str, float]:
    """CPU seconds of each engine, if every push took as long as the median one.

    Every now and then a ring grows into memory that is new to the process. Engines take turns, so
    who gets new memory and who gets what another has just given back is chance; a push that pays
    for it takes up to ten times as long as any other, and a few of them decide the sum. And where
    its memory lies makes an engine a twentieth faster or slower than its twin for as long as it
    lives. So what counts is the median of all rounds of how an engine compares with ``standard``.
    """
    medians = {name: np.array([np.median(each[name]) for each in rounds]) for name in rounds[0]}
    total = float(np.median(medians[standard])) * len(rounds[0][standard])
    return {
        name: total * float(np.median(each / medians[standard])) for name, each in medians.items()
    }

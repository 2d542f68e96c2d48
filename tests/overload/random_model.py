"""Random path models: plans of any shape with rates, windows and selectivities."""

from __future__ import annotations

import random

from penstock.overload import PathModel, Workload, path_model
from penstock.plan import read
from penstock.testing.random_plan import random_plan


def random_workload(chance: random.Random, streams: list[str]) -> Workload:
    """Rates from 10 to 1,000, windows of 1 to 60 s, a few matches per probe of a window."""
    rates = {stream: 10 ** chance.uniform(1, 3) for stream in streams}
    windows = {stream: chance.uniform(1, 60) for stream in streams}
    linked = {(streams[chance.randrange(i)], streams[i]) for i in range(1, len(streams))}
    for left in streams:
        for right in streams:
            if left < right and chance.random() < 0.15 and (right, left) not in linked:
                linked.add((left, right))
    selectivities = {
        (left, right): min(1.0, 10 ** chance.uniform(-1, 0.7) / (rates[right] * windows[right]))
        for left, right in sorted(linked)
    }
    return Workload(rates, windows, selectivities)


def random_model(chance: random.Random, most: int = 8) -> PathModel:
    """A model of a random plan of 2 to ``most`` streams."""
    streams = [chr(ord("A") + i) for i in range(chance.randint(2, most))]
    return path_model(read(random_plan(chance, streams)), random_workload(chance, streams))

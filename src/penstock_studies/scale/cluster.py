"""What a cluster would carry: a model, of numbers that were measured on one machine.

Nobody has run this: it says what follows from the measured parts if they stay what they are. There
is a worker for each core, and a cell for each worker, P in all, on M machines. At R tuples per
second over all streams:

- A tuple is read by some worker (``host_ns``: source, Spark, Python), routed and packed
  (``pack_ns``), and sent as ``copies`` copies of ``copy_bytes`` each. The fullest worker gets the
  part ``share`` of R as copies; that is copies × skew / P. A copy costs it ``byte_ns`` for each
  byte (shuffle: compressing, copying), ``unpack_ns``, and the engine.
- The engine's cost for a copy is that of a tuple where all are in one cell. That is too much rather
  than too little: all copies of a tuple together have the partners that it has.
- With windows of W seconds, the fullest cell holds w = R × share × W / streams rows of each stream.
  A hash join costs ``engine_ns`` × growth(w), where growth is what the experiment with windows
  measured, and stays at its last value beyond. A theta join compares with every row: ``compare_ns``
  × w.
- A micro-batch costs each core ``batch_seconds``, whatever is in it.

::

  CPU      batch_seconds / trigger + R / P × (host + pack)
             + R × share × (byte_ns × copy_bytes + unpack + engine)               <= busy
  network  in:  R / M × read_bytes + R × share × cores × copy_bytes × (1 - 1/M)
           out: R / M × copies × copy_bytes × (1 - 1/M)
             + R × share × cores × copy_bytes + R / M × results × result_bytes    <= busy × link
  memory   R × share × W × cores × state_bytes × headroom                         <= usable memory

Out goes the shuffle, what each cell received (its log of deliveries, on shared storage), and the
results. The largest R that satisfies all three is what the cluster carries, and the first of the
three to be exceeded is what binds. What Spark's driver does for a micro-batch, stragglers, lost
machines, and the network inside the storage are not in it.

``host_ns`` and ``batch_seconds`` come from three runs of ``penstock bench spark --only penstock``
on two cores: W1 with 4,000,000 tuples per stream in 20 micro-batches took 46.0 CPU seconds, with
500,000 in 20 it took 27.8, and in 5 it took 18.7. That is 1.73 µs for a tuple, of which 0.13 µs
are the engine, packing and unpacking, which are counted apart; and 0.6 s for a micro-batch, on two
cores. ``byte_ns``, ``busy``, ``memory_share`` and ``headroom`` are assumed.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Bound = Literal["CPU", "network", "memory"]
_HALVINGS = 60


@dataclass(frozen=True)
class Cluster:
    """Machines, and how they are used."""

    machines: int = 100
    cores: int = 8
    """Of each machine."""
    gigabits: float = 10.0
    """Of its link, per second and direction."""
    gibibytes: float = 64.0
    """Of its memory."""
    window: float = 60.0
    """Seconds."""
    trigger: float = 10.0
    """Seconds between micro-batches."""
    busy: float = 0.7
    """Of CPU and link, what may be used."""
    memory_share: float = 0.5
    """Of the memory, what states may use: the rest is Spark's, and room for batches."""
    headroom: float = 1.5
    """Rings have a power of two of places: between half and all of them are used."""
    host_ns: float = 1600.0
    byte_ns: float = 3.0
    batch_seconds: float = 0.3

    @property
    def workers(self) -> int:
        return self.machines * self.cores


@dataclass(frozen=True)
class Demand:
    """What a query asks for, on as many cells as the cluster has workers."""

    streams: int
    copies: float
    share: float
    """Of all tuples, what the fullest worker gets."""
    engine_ns: float
    compare_ns: float
    """Above 0 for theta joins: of a comparison."""
    pack_ns: float
    unpack_ns: float
    read_bytes: float
    copy_bytes: float
    state_bytes: float
    """Of a row that is held."""
    results: float
    """For each tuple."""

    @property
    def result_bytes(self) -> float:
        """A column of eight bytes for each stream."""
        return 8.0 * self.streams


@dataclass(frozen=True)
class Growth:
    """How the cost of a tuple grows with the rows of a window; 1 where engines were measured."""

    windows: tuple[float, ...]
    factors: tuple[float, ...]

    def at(self, window: float) -> float:
        """Between two windows by their logarithms, beyond the last as there."""
        place = bisect_right(self.windows, window)
        if place == 0:
            return self.factors[0]
        if place == len(self.windows):
            return self.factors[-1]
        low, high = self.windows[place - 1], self.windows[place]
        part = math.log(window / low) / math.log(high / low)
        return self.factors[place - 1] * (1 - part) + self.factors[place] * part


@dataclass(frozen=True)
class Capacity:
    """Tuples per second over all streams that each of three would allow."""

    cpu: float
    network: float
    memory: float

    @property
    def tuples(self) -> float:
        return min(self.cpu, self.network, self.memory)

    @property
    def binds(self) -> Bound:
        limits: dict[Bound, float] = {
            "CPU": self.cpu,
            "network": self.network,
            "memory": self.memory,
        }
        return min(limits, key=lambda each: limits[each])


def capacity(cluster: Cluster, demand: Demand, growth: Growth) -> Capacity:
    """What ``cluster`` would carry of ``demand``."""
    link = cluster.busy * cluster.gigabits * 1e9 / 8
    room = cluster.memory_share * cluster.gibibytes * 2**30
    held = demand.share * cluster.cores * demand.state_bytes * cluster.headroom * cluster.window
    return Capacity(
        _most(lambda rate: sum(cpu(cluster, demand, growth, rate).values()) <= cluster.busy),
        link / max(network(cluster, demand)),
        room / held,
    )


def rows_held(cluster: Cluster, demand: Demand, rate: float) -> float:
    """Rows of each stream in the fullest cell."""
    return rate * demand.share * cluster.window / demand.streams


def cpu(cluster: Cluster, demand: Demand, growth: Growth, rate: float) -> dict[str, float]:
    """Of the busiest core, the part that is busy with each thing."""
    held = rows_held(cluster, demand, rate)
    engine = (
        demand.compare_ns * held
        if demand.compare_ns
        else demand.engine_ns * growth.at(max(1.0, held))
    )
    read, received = 1e-9 * rate / cluster.workers, 1e-9 * rate * demand.share
    return {
        "batches": cluster.batch_seconds / cluster.trigger,
        "reading": read * cluster.host_ns,
        "packing": read * demand.pack_ns,
        "copies": received * (cluster.byte_ns * demand.copy_bytes + demand.unpack_ns),
        "engine": received * engine,
    }


def network(cluster: Cluster, demand: Demand) -> tuple[float, float]:
    """Bytes into and out of the busiest machine for each tuple per second."""
    away = 1 - 1 / cluster.machines
    received = demand.share * cluster.cores * demand.copy_bytes
    sent = demand.copies * demand.copy_bytes / cluster.machines
    results = demand.results * demand.result_bytes / cluster.machines
    return (
        demand.read_bytes / cluster.machines + received * away,
        sent * away + received + results,
    )


def _most(fits: Callable[[float], bool]) -> float:
    """The largest rate that fits, where less always fits too."""
    low, high = 0.0, 1.0
    if not fits(low):
        return 0.0
    while fits(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low

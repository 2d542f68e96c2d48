"""The process that is limited: takes the rows of a workload as time passes, with one plan.

Pushes arrive by the clock on the wall, event time running ``speed`` times as fast. A push that has
arrived is taken in when the one before is done; what waits is the queue. The run ends with the last
arrival, whatever still waits, or when memory does.

A request has the workload, the plan (or ``auto``), the limits that the engine is told, the bytes
that the process may have more than when everything is loaded, the speed and the seed. A line of
JSON is written for each second of event time, and one at the end.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock
from penstock_studies.limited.workload import Workload
from penstock_studies.limits_study import TOLERATED

_WARM = 40
"""Pushes of another engine before the clock starts, so that kernels are loaded."""


def main() -> None:
    request: dict[str, Any] = json.loads(sys.argv[1])
    os.sched_setaffinity(0, {request["core"]})
    pa.set_cpu_count(1)
    workload = Workload.from_json(request["workload"])
    batches = workload.batches(request["seed"])
    for plan in (request["plan"], *request["warm"]):
        warm = _engine(workload, plan, {})
        for batch in batches[:_WARM]:
            warm.push(batch)
        warm.statistics()
    del warm
    engine = _engine(workload, request["plan"], request["limits"])
    free, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data() + request["room"], hard))
    _tell("ready")
    sys.stdin.readline()
    run = _Run(engine, workload, request["limits"].get("memory"))
    ended = ""
    try:
        run.take(batches, request["speed"])
    except MemoryError:
        ended = "memory"
    resource.setrlimit(resource.RLIMIT_DATA, (free, hard))
    _tell(run.end(ended))


class _Run:
    """What happens to an engine."""

    def __init__(self, engine: penstock.Engine, workload: Workload, memory: int | None) -> None:
        self.engine = engine
        self.workload = workload
        self.memory = memory
        self.done = 0
        """Pushes."""
        self.results = 0
        self.cpu = 0.0
        """Seconds, in pushes."""
        self.busy = 0.0
        """Seconds by the clock, in pushes."""
        self.held = 0
        """Bytes of windows and states."""
        self.peak = 0
        self.over = 0
        """Pushes after which more was held than tolerated."""
        self.untold = 0
        """Those of them after which the limit was not said to be exceeded."""
        self.first_over: float | None = None
        """Second of event time of the first of them."""
        self.second = 0
        self.spent: list[float] = []
        """CPU seconds of each push."""

    def take(self, batches: list[dict[str, pa.Table]], speed: float) -> None:
        """Take in all that arrives until the input ends."""
        pace = speed * self.workload.slices
        begin = time.monotonic()
        while self.second < self.workload.seconds:
            passed = time.monotonic() - begin
            arrived = min(len(batches), int(passed * pace))
            self._note(passed * speed, arrived)
            if self.done < arrived:
                self._push(batches[self.done])
            else:
                time.sleep(max(0.0, begin + (self.done + 1) / pace - time.monotonic()))

    def _push(self, batch: dict[str, pa.Table]) -> None:
        wall, cpu = time.monotonic(), time.thread_time()
        self.results += self.engine.push(batch).num_rows
        self.spent.append(time.thread_time() - cpu)
        self.cpu += self.spent[-1]
        self.busy += time.monotonic() - wall
        self.done += 1
        self.held = sum(tree.nbytes for tree in self.engine.trees)
        self.peak = max(self.peak, self.held)
        if self.memory is not None and self.held > TOLERATED * self.memory:
            self.over += 1
            self.untold += "memory" not in self.engine.metrics()["control"]["exceeded"]
            if self.first_over is None:
                self.first_over = self.done / self.workload.slices

    def _note(self, now: float, arrived: int) -> None:
        """Tell the seconds of event time that have passed."""
        while self.second + 1 <= now and self.second < self.workload.seconds:
            self.second += 1
            waiting = max(0, arrived - self.done)
            _tell(
                {
                    "second": self.second,
                    "results": self.results,
                    "queue": round(self.workload.rows_per_push * waiting),
                    "memory": self.held,
                }
            )

    def end(self, ended: str) -> dict[str, Any]:
        """The last word."""
        last = self.spent[-max(1, len(self.spent) // 3) :]
        return {
            "ended": ended,
            "need": self.workload.slices * sum(last) / max(1, len(last)),
            "got": self.cpu / self.busy if self.busy else None,
            "peak": self.peak,
            "over": self.over,
            "untold": self.untold,
            "first_over": self.first_over,
            "exceeded": sorted(self.engine.metrics()["control"]["exceeded"]),
            "plan": re.sub(r" \|[^()]*", "", str(self.engine.plan)),
            "changes": len(self.engine.history),
            "done": self.done,
        }


def _engine(workload: Workload, plan: str, limits: dict[str, Any]) -> penstock.Engine:
    return penstock.Engine(
        workload.query,
        plan=plan,
        join=workload.join,
        feedback="off",
        limits=penstock.Limits(**limits) if limits else None,
    )


def _data() -> int:
    """Bytes of data of this process, as ``RLIMIT_DATA`` counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    raise OSError("no VmData in /proc/self/status")


def _tell(what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()

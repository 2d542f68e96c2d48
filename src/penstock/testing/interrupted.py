"""Real signals at random moments of pushes, migrations and checkpoints; answers stay exact.

A timer of the system raises SIGALRM some microseconds after a call has begun, and its handler
raises an exception, as that of Ctrl-C does. A call that was interrupted is made again, as a host
would: if it had left anything behind, or had been done already, an answer would be wrong.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, TypeVar

import pyarrow as pa

from penstock import Engine, Limits
from penstock.query.join_graph import JoinGraph
from penstock.testing.case import Case
from penstock.testing.checks import check_case
from penstock.testing.generators import generate
from penstock.testing.random_plan import random_plan

Answer = TypeVar("Answer")

_MOST_ATTEMPTS = 6
"""Interrupts of one call; then it is left alone, so that an end is sure."""


class Interrupt(BaseException):
    """What the handler of these signals raises."""


class Interrupted:
    """An engine whose calls are interrupted; ``signals`` counts those that were raised."""

    def __init__(self, engine: Engine, chance: random.Random) -> None:
        self.engine = engine
        self.signals = 0
        self._chance = chance
        self._armed = False
        self._usual = 200e-6
        signal.signal(signal.SIGALRM, self._raise)

    def push(self, batches: Mapping[str, Any], watermark: int | None = None) -> pa.Table:
        return self.call(lambda: self.engine.push(batches, watermark))

    def finish(self) -> pa.Table:
        return self.engine.finish()

    def call(self, what: Callable[[], Answer]) -> Answer:
        """The answer of ``what``, however often it takes."""
        answer: list[Answer] = []
        for attempt in range(_MOST_ATTEMPTS + 1):
            began = time.perf_counter()
            try:
                if attempt < _MOST_ATTEMPTS:
                    self._armed = True
                    signal.setitimer(signal.ITIMER_REAL, self._usual * self._chance.random() + 1e-6)
                answer.append(what())
                self._armed = False
            except Interrupt:
                pass
            finally:
                self._armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
            if answer:
                took = time.perf_counter() - began
                self._usual = min(0.8 * self._usual + 0.3 * took, 0.05)
                return answer[0]
        raise AssertionError("a call that nobody interrupts gave no answer")

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            self.signals += 1
            raise Interrupt


def attack_by_signals(number: int) -> dict[str, int]:
    """One random query with its pushes, interrupted all the time and compared with the oracle."""
    chance = random.Random(number)
    case = generate(number)
    engines: list[Interrupted] = []

    def start(graph: JoinGraph, case: Case) -> Interrupted:
        options: dict[str, Any] = {"feedback": chance.choice(("off", "jit", "bloom"))}
        if chance.random() < 0.3 and not graph.by_rows:
            options["overload"] = chance.choice(("shed", "defer"))
            options["limits"] = Limits(probes=1e12)
        plan = case.plan if chance.random() < 0.8 else "auto"
        engine = Engine(
            graph,
            plan=plan,
            lateness=case.lateness,
            idle=case.idle,
            watermark_policy=case.policy,
            **options,
        )
        engines.append(Interrupted(engine, chance))
        return engines[-1]

    def between(running: Any, push: int) -> Any:
        if chance.random() < 0.3 and len(case.graph().blocks) == 1:
            plan = random_plan(chance, [each.alias for each in case.graph().blocks[0].streams])
            running.call(lambda: running.engine.migrate(plan, strategy="jisc"))
        if chance.random() < 0.1:
            blob = running.call(running.engine.checkpoint)
            running.engine = Engine.restore(case.graph(), blob)
        return running

    check_case(case, start, between)
    return {"exact": 1, "signals": sum(each.signals for each in engines)}

"""CPU seconds of pushes of which some are measured."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.running.push_clock import PushClock


def test_small_pushes_are_measured_now_and_then_and_large_ones_always() -> None:
    chance = np.random.default_rng(0)
    now = asked = true = told = 0.0

    def cpu() -> float:
        nonlocal asked
        asked += 1
        return now

    clock = PushClock(cpu, lambda: now)
    for push in range(4000):
        took = float(chance.uniform(20e-6, 80e-6)) if push % 100 else 0.05
        clock.start()
        now += took
        told += clock.stop()
        true += took
        now += 1.0  # What the host does between pushes costs the engine nothing.
    assert told == pytest.approx(true, rel=0.02)
    assert asked < 2 * 4000 / 6


def test_waiting_for_the_cpu_is_not_cpu() -> None:
    cpu = wall = 0.0
    clock = PushClock(lambda: cpu, lambda: wall)
    for _ in range(100):  # Large pushes, while others have most of the machine.
        clock.start()
        cpu, wall = cpu + 0.01, wall + 0.05
        assert clock.stop() == pytest.approx(0.01)

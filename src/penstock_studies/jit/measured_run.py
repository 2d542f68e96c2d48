"""One run of one system on one setting: CPU seconds, comparisons, partial results, memory.

A run stops when it has used up its CPU seconds; what it then has is what it had by that time, and
no ratio is formed from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

import penstock
from penstock_studies.jit.clique import Arrival, in_batches
from penstock_studies.jit.form import AS_PUBLISHED, DOE, JIT, REF, REF_AS_PUBLISHED, Form
from penstock_studies.jit.literal import LiteralJit
from penstock_studies.jit.setting import Setting

Clock = Callable[[], float]


@dataclass(frozen=True)
class MeasuredRun:
    """What a run has cost. ``comparisons`` are counted by the literal form only."""

    system: str
    feedback: str
    cpu: float
    partial_results: int
    results: int
    memory: int
    """The most bytes of states that were held."""
    comparisons: int | None = None
    is_complete: bool = True


LITERAL: dict[str, Form] = {
    "off": REF,
    "off, as published": REF_AS_PUBLISHED,
    "as published": AS_PUBLISHED,
    "jit": JIT,
    "bloom": Form(detection="bloom"),
    "level 1": Form(level=1),
    "∅ only": DOE,
}

ENGINE: dict[str, penstock.Feedback | str] = {
    "off": "off",
    "jit": penstock.Feedback(adaptive=False),
    "bloom": penstock.Feedback(detection="bloom", adaptive=False),
    "level 1": penstock.Feedback(level=1, adaptive=False),
    "jit, adaptive": "jit",
}


def run_literal(
    setting: Setting,
    tuples: Sequence[Arrival],
    feedback: str,
    seconds: float,
    clock: Clock = time.process_time,
) -> MeasuredRun:
    """The literal form, nested loops, tuple at a time."""
    run = LiteralJit(setting.query, setting.plan, LITERAL[feedback])
    start = clock()
    done = 0
    for each in tuples:
        run.arrive(each.stream, each.row, each.time)
        done += 1
        if done % 256 == 0 and clock() - start > seconds:
            break
    ledger = run.ledger
    return MeasuredRun(
        "literal, nested loops",
        feedback,
        clock() - start,
        ledger.partial_results,
        ledger.results,
        ledger.peak_bytes,
        ledger.comparisons,
        done == len(tuples),
    )


def run_engine(
    setting: Setting,
    tuples: Sequence[Arrival],
    feedback: str,
    join: str,
    batch: float,
    seconds: float,
    clock: Clock = time.process_time,
    plan: str | None = None,
) -> MeasuredRun:
    """The engine, in pushes of ``batch`` seconds of event time; by default, the setting's plan."""
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        engine = penstock.Engine(
            setting.query, plan=plan or setting.plan, feedback=ENGINE[feedback], join=join
        )
        spent, memory, is_complete = 0.0, 0, True
        for tables in in_batches(setting.query, tuples, round(1000 * batch)):
            if spent > seconds:
                is_complete = False
                break
            start = clock()
            engine.push(tables)
            spent += clock() - start
            memory = max(memory, engine.metrics()["state"]["bytes"])
        metrics = engine.metrics()
    finally:
        pa.set_cpu_count(threads)
    made = sum(each["made"] for each in metrics["joins"])
    return MeasuredRun(
        f"engine, {join.replace('-', ' ')}",
        feedback,
        spent,
        made - metrics["results"],
        metrics["results"],
        memory,
        None,
        is_complete,
    )

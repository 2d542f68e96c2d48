"""A change of plan by every strategy that there is, beside each other: time, memory, and proof.

Beside those of Figures 7 and 8 there are the strategy that an engine takes if nobody says
(``auto``), moving state, STAIRs that promote at once and on demand, and parallel track as the paper
has it: while both plans run, each operator of the old one looks through its state for tuples from
before the change after every push (section 3.3), where ours compares one number per stream.

The call of ``migrate`` counts, and all pushes for 1.1 windows after it. Memory is that of windows
and states, the most after any push. Before each push it is checked that the plan which is timed is
the plan that runs; an eddy holds its routes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

import penstock
from penstock_studies.jisc.contest import Spent, contest
from penstock_studies.jisc.setting import Setting, left_deep

Case = Callable[[Sequence[str]], tuple[str, ...]]

HOW = {
    "unchanged": "",
    "jisc": "jisc",
    "auto": "auto",
    "moving-state": "moving-state",
    "parallel-track": "parallel-track",
    "purge-checks": "parallel-track",
    "cacq": "",
    "stairs": "moving-state",
    "stairs-lazy": "jisc",
}
"""How each changes its plan; those that have nothing here do not."""
EDDIES = ("cacq", "stairs", "stairs-lazy")
_FILLING = 1_000
"""Tuples of each stream in the pushes that fill the windows, at least."""


def strategies(setting: Setting, case: Case, seed: int, rounds: int) -> dict[str, float]:
    """CPU seconds of each, the least of ``rounds`` for each push, and megabytes."""
    memory: dict[str, int] = {}
    spent = [one_round(setting, case, seed, turn, memory) for turn in range(rounds)]
    row = {f"{name} s": float(np.min([each[name] for each in spent], axis=0).sum()) for name in HOW}
    return row | {f"{name} MB": size / 1e6 for name, size in memory.items()}


def one_round(setting: Setting, case: Case, seed: int, turn: int, memory: dict[str, int]) -> Spent:
    """CPU seconds for each push; ``memory`` gets the bytes that each engine held at most."""
    old, new = setting.streams, left_deep(case(setting.streams))
    engines = {name: setting.engine(_plan(name, left_deep(old))) for name in HOW}
    for engine in engines.values():
        engine.pin()
    filling = replace(setting, batch=max(setting.batch, min(_FILLING, setting.window)))
    contest(engines, filling.batches(1.5, seed))

    def change(name: str, engine: penstock.Engine, number: int) -> None:
        if number == 0 and HOW[name]:
            engine.migrate(_plan(name, new), HOW[name])
            engine.pin()
        elif name == "purge-checks":
            purge_check(engine)

    def watch(name: str, engine: penstock.Engine) -> None:
        memory[name] = max(memory.get(name, 0), engine.metrics()["state"]["bytes"])

    def wanted(name: str, _: int) -> str | None:
        return None if name == "cacq" else _plan(name, new if HOW[name] else left_deep(old))

    pushes = setting.batches(1.1, seed + 1, start=1.5)
    return contest(engines, pushes, change, turn, watch, wanted)


def purge_check(engine: penstock.Engine) -> bool:
    """What the paper has operators do after every push: whether any state of an old plan holds a
    tuple from before the change."""
    tree = engine._join.trees[0]
    if tree.older is None:
        return False
    is_held = False
    for track in tree.older.tracks:
        for state in track.states:
            rows = np.arange(state.rows.tail, state.rows.head)
            old = np.zeros(len(rows), np.bool_)
            for stream, column in state.id_columns.items():
                old |= state.rows.take(column, rows) < tree.since[stream]
            is_held |= bool(old.any())
    return is_held


def _plan(name: str, tree: str) -> str:
    if name == "cacq":
        return name
    return f"{name} {tree}" if name in EDDIES else tree

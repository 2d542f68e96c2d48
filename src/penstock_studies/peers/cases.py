"""The joins that are measured, and the orders in which engines are told to join.

``written`` is the order of the query, ``better`` the one that a person who knows the data would
write: the most selective join first. With windows of w, one tuple per millisecond and d values, a
tuple meets 2 w / d of the other stream over its life; the numbers below are these.

========= ======================================= ==========================================
case      streams                                 a tuple meets
========= ======================================= ==========================================
W1        chain B - A - C                         5 B, 0.1 C
W2        clique of four (W2s of the engine)      4 ab, which mostly find partners
star      A, B, C around F                        F: 4 A, 1 B, 0.1 C
chain     A - B - C - D                           4 ab, 1 bc, 0.1 cd
skew      chain B - A - C, hot values in x        200 B if hot (2 in 100), else 1; 0.1 C
pair      A - B                                   2 B
========= ======================================= ==========================================

The pair is there for its lack of anything to plan: whoever parses and probes fastest wins it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.cli.bench.workloads import WORKLOADS, Workload
from penstock_studies.peers.hot_values import HotWorkload

QUICK = 10
"""A quick run has so many times smaller windows, domains and inputs: equal work per tuple."""
_REHEARSAL_WINDOW = 1_000


@dataclass(frozen=True)
class Case:
    """A workload, and how it is told to engines that do not choose for themselves."""

    name: str
    about: str
    workload: Workload
    better: tuple[str, ...]
    better_plan: str

    @property
    def written(self) -> tuple[str, ...]:
        return self.workload.streams

    @property
    def tuples(self) -> int:
        return self.workload.rows * len(self.workload.streams)

    def smaller(self, factor: float) -> Case:
        """The same work per tuple on an input that is ``factor`` times smaller."""
        workload = self.workload
        domains = {c: max(1, round(d / factor)) for c, d in workload.domains.items()}
        if self.name == "W2":  # Two columns at a time decide there: d falls, X with its root.
            for column in ("ac", "ad", "bc", "bd"):
                domains[column] = max(1, round(workload.domains[column] / factor**0.5))
        return replace(
            self,
            workload=replace(
                workload,
                rows=round(workload.rows / factor),
                window=max(1, round(workload.window / factor)),
                domains=domains,
            ),
        )

    def rehearsal(self) -> Case:
        """A little of everything: windows fill, expire, and give results."""
        small = self.smaller(self.workload.window / _REHEARSAL_WINDOW)
        return replace(small, workload=replace(small.workload, rows=4 * _REHEARSAL_WINDOW))


def _case(
    name: str, about: str, columns: dict[str, tuple[str, ...]], meets: dict[str, float], better: str
) -> Case:
    window = 50_000
    workload = Workload(
        name=name,
        about=about,
        columns=columns,
        domains={column: round(2 * window / number) for column, number in meets.items()},
        window=window,
        rows=250_000,
        plans={},
    )
    plan = better[0]
    for stream in better[1:]:
        plan = f"({plan} {stream})"
    return Case(name, about, workload, tuple(better), plan)


def _w1() -> Case:
    w1 = WORKLOADS["W1"]
    return Case("W1", w1.about, w1, ("A", "C", "B"), w1.plans["mjoin"])


def _w2() -> Case:
    w2 = WORKLOADS["W2s"]
    return Case("W2", w2.about, w2, w2.streams, w2.plans["tree"])


def _skew() -> Case:
    uniform = _case(
        "skew",
        "chain of three; a fiftieth of the tuples meets 200 others each",
        {"A": ("x", "y"), "B": ("x",), "C": ("y",)},
        {"x": 1, "y": 0.1},
        "ACB",
    )
    hot = HotWorkload(**vars(uniform.workload), hot=("x",), share=0.02, values=10)
    return replace(uniform, workload=hot)


CASES = {
    case.name: case
    for case in (
        _w1(),
        _w2(),
        _case(
            "star",
            "star of four; each F meets 4 A, 1 B, 0.1 C",
            {"F": ("a", "b", "c"), "A": ("a",), "B": ("b",), "C": ("c",)},
            {"a": 4, "b": 1, "c": 0.1},
            "FCBA",
        ),
        _case(
            "chain",
            "chain of four; 4 B per A, 1 C per B, 0.1 D per C",
            {"A": ("ab",), "B": ("ab", "bc"), "C": ("bc", "cd"), "D": ("cd",)},
            {"ab": 4, "bc": 1, "cd": 0.1},
            "DCBA",
        ),
        _skew(),
        _case(
            "pair",
            "two streams; 2 B per A, nothing to plan",
            {"A": ("x",), "B": ("x",)},
            {"x": 2},
            "AB",
        ),
    )
}

"""The overload policy of a job as plain values: what happens when there is too little CPU.

The names are those of ``penstock.Overload``, which knows what they mean; they are written down here
too, as job files are read without the engine. What is not given is left to it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from penstock.job.mistake import listed, mistake
from penstock.job.table import Table

POLICIES = ("exact", "shed", "defer")
CHOICES = ("random", "newest", "correlated")
AT_RANDOM = "random-shedding"
ALLOCATORS = (
    "lifespan-greedy",
    "tree-greedy",
    "jaqpot",
    "grepp",
    "knapsack",
    "jda",
    "jdam",
    AT_RANDOM,
)


@dataclass(frozen=True, slots=True)
class Overload:
    """A policy, and the options of ``penstock.Overload`` that are given with it."""

    policy: str
    probes: float | None = None
    """Per second of event time."""
    cpu: float | None = None
    """Share of a core."""
    seconds: float | None = None
    """Of wall time per micro-batch and cell."""
    choice: str | None = None
    audit: float | None = None
    """Share of the probes."""
    allocator: str | None = None
    burst: float | None = None
    """Seconds' worth of budget that is saved."""
    seed: int | None = None

    @property
    def budgets(self) -> tuple[str, ...]:
        """The names of the budgets that are given."""
        return tuple(n for n in ("probes", "cpu", "seconds") if getattr(self, n) is not None)

    def given(self) -> dict[str, Any]:
        """The options that are given, by name."""
        return {name: each for name, each in asdict(self).items() if each is not None}


def overload_in(top: Table) -> Overload | None:
    """The key ``overload`` of a job file: the name of a policy, or a table."""
    if not top.holds_table("overload"):
        policy = top.choice("overload", POLICIES)
        return None if policy is None else Overload(policy)
    table = top.table("overload")
    assert table is not None
    policy = table.choice("policy", POLICIES)
    if policy is None:
        raise table.missing("policy", f"one of {listed(POLICIES)}")
    overload = Overload(
        policy,
        probes=table.number("probes", "probes per second of event time, more than 0"),
        cpu=table.number("cpu", "a share of a core, more than 0"),
        seconds=table.number("seconds", "seconds per micro-batch, more than 0"),
        choice=table.choice("choice", CHOICES),
        audit=table.number("audit", _AUDIT),
        allocator=table.choice("allocator", ALLOCATORS),
        burst=table.number("burst", "seconds, 0 or more", may_be_none=True),
        seed=_seed(table),
    )
    table.end()
    if overload.audit is not None and overload.audit > 1:
        raise table.wrong("audit", overload.audit, _AUDIT)
    if len(overload.budgets) > 1:
        raise mistake(table.where(), " and ".join(overload.budgets), "one budget")
    if overload.allocator == AT_RANDOM and (policy, overload.budgets) != ("shed", ("cpu",)):
        expected = 'policy = "shed" and a budget of cpu beside it'
        raise table.wrong("allocator", AT_RANDOM, expected, "it leaves rows at the door")
    return overload


def _seed(table: Table) -> int | None:
    value = table.take("seed")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise table.wrong("seed", value, "a whole number, 0 or more")
    return value


_AUDIT = "a share of the probes, more than 0 and up to 1"

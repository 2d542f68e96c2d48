"""Too little CPU, for people: the end of EXPLAIN ANALYZE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from penstock.explain.instant_text import instant_text
from penstock.explain.quantities import count_text, memory_text
from penstock.planning.limits import three_digits
from penstock.query.join_graph import TimeUnit


def overload_text(metrics: Mapping[str, Any]) -> str:
    """Lines about the ``overload`` of an engine's metrics; empty if there is no budget to keep."""
    overload = metrics["overload"]
    if "budget" not in overload:
        return ""
    lines = [f"overload      {_state(overload, metrics['time_unit'])}"]
    lines += [*_parts(overload), *_probes(metrics), *_left_out(overload)]
    if overload["skipped"]:
        lines.append(f"  skipped     {count_text(overload['skipped'])} probes since the start")
    lost = overload["lost"]
    if lost["results"]:
        everything = metrics["results"] + lost["results"]
        lines.append(
            f"  lost        about {count_text(lost['results'])} ± {count_text(lost['error'])} "
            f"results, {three_digits(100 * lost['results'] / everything)} % of all"
        )
    lines += _debt(overload)
    if overload["stale"] or overload["forgotten"]:
        lines.append(
            f"  stale       {count_text(overload['stale'])} results made too late, "
            f"{count_text(overload['forgotten'])} owed probes given up"
        )
    ages = [
        f"{stream} {three_digits(age)} s" + _asked(overload["freshness"], stream)
        for stream, age in overload["staleness"].items()
    ]
    if ages:
        lines.append(f"  oldest tuple in the last results: {', '.join(ages)}")
    if overload["allocation"]:
        lines += [f"  {line}" for line in overload["allocation"].splitlines()]
    return "\n".join(lines)


def _state(overload: Mapping[str, Any], unit: TimeUnit | None) -> str:
    policy, budget = overload["policy"], overload["budget"]
    if not overload["short"]:
        return f"{policy}, within the budget ({budget})"
    behind = ", falling behind" if policy == "exact" else ""
    parts = overload["parts"]
    what, most = "so many", ""
    if parts:
        name = max(parts, key=parts.__getitem__)
        what, most = "work of so many", f", most goes into {name} ({parts[name]:.0%})"
    return (
        f"{policy}, SHORT of CPU since {instant_text(overload['since'], unit)}{behind}{most}: "
        f"the last push needed {what} probes: {count_text(overload['needed'])}, and was allowed "
        f"{count_text(overload['allowed'])} ({budget})"
    )


def _parts(overload: Mapping[str, Any]) -> list[str]:
    """Where the CPU goes, the most first."""
    parts = sorted(overload["parts"].items(), key=lambda each: -each[1])
    told = ", ".join(f"{name} {share:.0%}" for name, share in parts if share >= 0.005)
    return [f"  CPU         {told}"] if told else []


def _probes(metrics: Mapping[str, Any]) -> list[str]:
    """Whose rows have probed, the most first: of all probes since the plan runs."""
    made: Counter[str] = Counter()
    for join in metrics["joins"]:
        for streams, probes in join["probes_of"].items():
            made[streams.strip("{}").replace(",", "")] += probes
    whole = made.total()
    if not (metrics["overload"]["short"] and whole):
        return []
    told = [f"of {n} {c / whole:.0%}" for n, c in made.most_common() if c >= 0.005 * whole]
    return [f"  probes      since this plan runs: {', '.join(told)}"]


def _left_out(overload: Mapping[str, Any]) -> list[str]:
    told = ", ".join(f"{name} {count_text(n)}" for name, n in overload["left_out"].items() if n)
    return [f"  left out    rows that were not taken in: {told}"] if told else []


def _debt(overload: Mapping[str, Any]) -> list[str]:
    debt = overload["debt"]
    lines = []
    if debt["probes"]:
        where = ", ".join(f"{name} {count_text(n)}" for name, n in debt["inputs"].items())
        lines.append(
            f"  debt        {count_text(debt['probes'])} probes owed ({where}), the oldest "
            f"{three_digits(debt['age'])} s old, {memory_text(debt['bytes'])}"
        )
    if overload["paid"]:
        lines.append(f"  paid        {count_text(overload['paid'])} probes later than their turn")
    return lines


def _asked(freshness: Mapping[str, float], stream: str) -> str:
    return f" (FRESHNESS {three_digits(freshness[stream])} s)" if stream in freshness else ""

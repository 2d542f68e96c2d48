"""The state of a run as Prometheus' text, for whoever scrapes ``/metrics``.

Counters begin with the run (or with the first event that the page has seen of it), so they go back
to zero with a restart, which ``rate()`` knows about. Times are seconds since 1970, so that a lag is
``time() - penstock_watermark_seconds``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

KIND = "text/plain; version=0.0.4; charset=utf-8"
STATUSES = ("waiting", "running", "idle", "stopped", "failed")


def prometheus_text(run: Mapping[str, Any]) -> str:
    """``run``, a message for a page, as Prometheus reads it."""
    return "".join(_lines(run))


def _lines(run: Mapping[str, Any]) -> Iterator[str]:
    start, totals, latest = run["start"], run["totals"], run["latest"]
    info = {"job": start.get("job", ""), "run": start.get("run", "")}
    yield from _metric("run_info", "gauge", "The run.", [(info, 1)])
    states = [({"status": each}, int(run["status"] == each)) for each in STATUSES]
    yield from _metric("status", "gauge", "1 for what the run is doing.", states)
    for name, what in (
        ("batches", "Micro-batches that were committed."),
        ("results", "Results that left."),
    ):
        yield from _number(f"{name}_total", "counter", what, totals[name])
    sources = run["sources"]

    def by_source(name: str) -> list[tuple[dict[str, Any], float]]:
        return [
            ({"source": each["name"]}, each[name]) for each in sources if each[name] is not None
        ]

    yield from _metric("rows_total", "counter", "Rows read.", by_source("rows"))
    dropped = [
        ({"source": each["name"], "reason": reason}, count)
        for each in sources
        for reason, count in each["dropped"].items()
    ]
    yield from _metric("dropped_rows_total", "counter", "Rows dropped, by reason.", dropped)
    kept_out = "Rows that the query's own filters keep out of every result."
    yield from _metric("filtered_rows_total", "counter", kept_out, by_source("filtered"))
    skipped = [
        ({"source": each["name"], "reason": reason}, count)
        for each in sources
        for reason, count in each["skipped"].items()
    ]
    yield from _metric("skipped_files_total", "counter", "Files left out, by reason.", skipped)
    waiting = "Rows that a source has and no batch has taken, of sources that tell it."
    yield from _metric("backlog_rows", "gauge", waiting, by_source("backlog"))
    behind = "Event time that a stream is behind, of streams that all state waits for."
    yield from _metric("silent_seconds", "gauge", behind, by_source("silent"))
    newest = [(labels, at / 1000) for labels, at in by_source("newest")]
    yield from _metric("newest_seconds", "gauge", "Newest event time of a source.", newest)
    last = "When the last batch with rows of a source ended."
    yield from _metric("last_rows_seconds", "gauge", last, by_source("last"))
    if run["watermark"] is not None:
        mark = run["watermark"] / 1000
        yield from _number("watermark_seconds", "gauge", "No older row is waited for.", mark)
    if run["last_batch"] is not None:
        ended = run["last_batch"]
        yield from _number("last_batch_seconds", "gauge", "When the last batch ended.", ended)
    for name, key, what in (
        ("batch_duration_seconds", "slowest", "What the last batch took."),
        ("engine_duration_seconds", "engine_seconds", "Engines in the last batch, all cells."),
        ("state_bytes", "state_bytes", "What engines hold in memory."),
        ("stored_bytes", "stored_bytes", "What Spark's state store holds."),
        ("asleep_rows", "asleep", "Rows that wait until somebody wants them."),
        ("short_cells", "short", "Cells that are short of CPU."),
    ):
        if key in latest:
            yield from _number(name, "gauge", what, latest[key])
    overload = run["overload"]
    if overload:
        lost = overload["lost"]
        yield from _number("lost_results", "gauge", "Results lost for want of CPU, about.", lost)
        yield from _number("owed_probes", "gauge", "Probes put off.", overload["owed"])


def _number(name: str, kind: str, what: str, value: float) -> Iterator[str]:
    return _metric(name, kind, what, [({}, value)])


def _metric(
    name: str, kind: str, what: str, values: Sequence[tuple[Mapping[str, Any], float]]
) -> Iterator[str]:
    if not values:
        return
    yield f"# HELP penstock_{name} {what}\n# TYPE penstock_{name} {kind}\n"
    for labels, value in values:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield (
            f"penstock_{name}{{{inside}}} {_plain(value)}\n"
            if inside
            else (f"penstock_{name} {_plain(value)}\n")
        )


def _plain(value: float) -> str:
    """A number without an exponent.

    >>> _plain(3.0), _plain(1.5e-5), _plain(1748779277.974)
    ('3', '0.000015', '1748779277.974')
    """
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    return text or "0"


def _escaped(text: Any) -> str:
    return str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""Alerts: each begins once and is over once, by the events of a run and the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from penstock.telemetry import Alert, AlertRules, Alerts, Batch, Failure, OverloadChange, Start
from penstock.telemetry.alerts import BATCHES, KINDS

BEGIN = 1_700_000_000.0
ABOUT = ("job", "SELECT …", "((A B) C)", 2, "2 cells", {"A": "parquet"}, "kafka", {"spark": "4"})


def at(seconds: float) -> str:
    return datetime.fromtimestamp(BEGIN + seconds, UTC).isoformat().replace("+00:00", "Z")


START = Start(at(0), "r", *ABOUT)


def batch(number: int, rows: int = 100, late: int = 0, rejected: int = 0) -> Batch:
    dropped = {"A": {"late": late, "unreadable": rejected}}
    found = Batch(at(number), "r", number, 0.5, {"A": rows, "B": 9}, 0, {"A": late}, 0, 0, 0.0)
    return replace(found, dropped=dropped)


def told(alerts: list[Alert]) -> list[tuple[str, str, bool]]:
    return [(each.alert, each.source, each.is_over) for each in alerts]


def test_shares_of_rows_begin_and_end() -> None:
    alerts = Alerts(AlertRules(late=0.1, rejected=0.2))
    alerts.of(START)
    assert alerts.of(batch(0, late=10)) == []  # As many as are allowed.
    (first,) = alerts.of(batch(1, late=15))
    assert told([first]) == [("late", "A", False)]
    assert (first.value, first.limit) == (25 / 200, 0.1)
    assert first.text == "12.5 % of the rows of A came behind the watermark"
    assert alerts.of(batch(2, late=50)) == []
    assert told(alerts.of(batch(3, rejected=90))) == [("rejected", "A", False)]
    assert alerts.of(batch(4, rows=0)) == []  # Nothing came: nothing is said.
    over = [alert for n in range(5, 5 + BATCHES) for alert in alerts.of(batch(n))]
    assert sorted(told(over)) == [("late", "A", True), ("rejected", "A", True)]


def test_lag_of_the_watermark() -> None:
    alerts = Alerts(AlertRules(lag=30.0))
    alerts.of(START)
    assert alerts.of(batch(0)) == []
    behind = replace(batch(1), watermark=int(1000 * (BEGIN - 40)))
    (alert,) = alerts.of(behind)
    assert told([alert]) == [("lag", "", False)]
    assert alert.value == 41.5
    caught_up = replace(batch(2), watermark=int(1000 * (BEGIN - 20)))
    assert told(alerts.of(caught_up)) == [("lag", "", True)]


def test_no_batch_for_too_long() -> None:
    alerts = Alerts(AlertRules(no_batch=60.0))
    assert alerts.look(BEGIN) == []
    alerts.of(START)
    assert alerts.look(BEGIN + 60) == []
    assert told(alerts.look(BEGIN + 61)) == [("no batch", "", False)]
    assert alerts.look(BEGIN + 90) == []
    assert told(alerts.of(batch(95))) == [("no batch", "", True)]


def test_silence_shortage_and_failure_need_no_rule() -> None:
    alerts = Alerts(AlertRules())
    alerts.of(START)
    silent = replace(batch(0), silent={"B": 90.0})
    assert told(alerts.of(silent)) == [("silent", "B", False)]
    assert alerts.of(replace(batch(1), silent={"B": 95.0})) == []
    assert told(alerts.of(batch(2))) == [("silent", "B", True)]
    short = [OverloadChange(at(3), "r", 3, cell, "short", "shed") for cell in (0, 1)]
    assert told(alerts.of(short[0])) == [("short", "", False)]
    assert alerts.of(short[1]) == []
    assert alerts.of(OverloadChange(at(4), "r", 4, 0, "recovered", "shed")) == []
    last = OverloadChange(at(5), "r", 5, 1, "recovered", "shed")
    assert told(alerts.of(last)) == [("short", "", True)]
    (failed,) = alerts.of(Failure(at(6), "r", "out of luck"))
    assert failed.text == "the run has failed: out of luck"
    assert {"failed", "silent", "short"} < set(KINDS)

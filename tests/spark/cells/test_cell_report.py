"""Reports of cells: JSON both ways, and found among observed metrics."""

from __future__ import annotations

from dataclasses import replace

from penstock.spark.cells.cell_report import CellReport, cell_reports, ways_between

REPORT = CellReport(
    batch=7,
    cell=1,
    rows={"A": 10, "B": 0},
    results=3,
    dropped={"A": {"late": 2}},
    state_bytes=4_096,
    stored_bytes=512,
    engine_seconds=0.25,
    total_seconds=0.5,
    origin="restored",
    plan="((A B) C)",
    watermark=None,
)


def test_json_both_ways() -> None:
    assert CellReport.from_json(REPORT.to_json()) == REPORT


def test_reports_are_found_among_observed_metrics() -> None:
    first, second = replace(REPORT, cell=0), replace(REPORT, cell=1)
    observed = {
        "penstock 1": {"reports": [second.to_json(), first.to_json()]},
        "mine": {"reports": ["not a report"]},
        "penstock 2": {"reports": None},
    }
    assert cell_reports(observed) == [first, second]
    again = [replace(each, origin="live").to_json() for each in (first, second)]
    observed["penstock 1"] = {"reports": [second.to_json(), first.to_json(), *again]}
    assert cell_reports(observed) == [first, second], "each once, if a batch is computed twice"
    observed["penstock 2"] = {"reports": [first.to_json()]}
    assert cell_reports(observed) == [first, first, second], "of two joins"
    assert cell_reports({}) == []


def test_pushes_of_a_batch_by_way() -> None:
    before = {"execution": {"compiled": 3, "reference": 1, "reasons": {"EXCEPT": 1}}}
    reasons = {"EXCEPT": 1, "ROWS windows": 2}
    after = {"execution": {"compiled": 4, "reference": 3, "reasons": reasons}}
    assert ways_between(before, after) == ({"compiled": 1, "reference": 2}, {"ROWS windows": 2})

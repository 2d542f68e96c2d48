"""What late probes find: it is known after a restart, too."""

from __future__ import annotations

from penstock.engine.overload.late_finds import LateFinds
from penstock.plan.stream_set import StreamSet

A = StreamSet.of("A")


def test_small_passes_add_up_across_what_is_written_down() -> None:
    whole, written = LateFinds(), LateFinds()
    for number in range(400):
        for each in (whole, written):
            each.note(A, 5.0 + number % 3, 9.0)
        written = LateFinds.from_json(written.to_json())
    assert whole.ratio(A).is_known
    assert written.ratio(A) == whole.ratio(A)

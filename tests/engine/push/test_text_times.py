"""Event times that are texts: read as Python reads them, NULL where they are none, and counted."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pytest

import penstock
from penstock.engine.push.text_times import times_of
from penstock.errors import OptionError, QueryError

QUERY = "SELECT A.id AS a, B.id AS b FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x"
TEXTS = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("ts", pa.string())])
MICROSECONDS = pa.timestamp("us")
FORMATS = ("%d.%m.%Y %H:%M:%S", "%Y%m%d%H%M%S", "%m/%d/%Y %H:%M")


def _python(text: str, format_: str | None) -> datetime.datetime | None:
    try:
        if format_ is not None:
            return datetime.datetime.strptime(text, format_)
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo is None else found.astimezone(datetime.UTC).replace(tzinfo=None)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_format_means_what_it_means_to_python(format_: str) -> None:
    pick = random.Random(7)
    texts = []
    for _ in range(500):
        year, month, day = pick.randint(1990, 2040), pick.randint(1, 12), pick.randint(1, 31)
        text = format_.replace("%Y", f"{year:04}").replace("%m", f"{month:02}")
        text = text.replace("%d", f"{day:02}").replace("%H", f"{pick.randint(0, 24):02}")
        texts.append(text.replace("%M", f"{pick.randint(0, 60):02}").replace("%S", "07"))
    texts += ["", "yesterday", "01.01.2026"]
    found = times_of(pa.array([*texts, None]), format_, MICROSECONDS).to_pylist()
    assert found == [*(_python(text, format_) for text in texts), None]
    assert None in found[:500]
    assert sum(value is not None for value in found) > 300


def test_iso_means_what_it_means_to_python() -> None:
    pick = random.Random(8)
    texts = []
    for _ in range(1_000):
        text = f"{pick.randint(1990, 2040):04}-{pick.randint(1, 13):02}-{pick.randint(1, 31):02}"
        if pick.random() < 0.9:
            text += f"{pick.choice('T ')}{pick.randint(0, 24):02}:{pick.randint(0, 60):02}"
            text += pick.choice(["", ":59", ":59.25", ":59.123456"])
            text += pick.choice(["", "", "Z", "+02:00", "-0530"])
        texts.append(text)
    found = times_of(pa.array([*texts, None, "soon"]), "iso", MICROSECONDS).to_pylist()
    assert found == [*(_python(text, None) for text in texts), None, None]
    assert None in found[:1_000]


def test_texts_that_are_no_time_are_counted_and_kept() -> None:
    query = penstock.parse(QUERY, {"A": TEXTS, "B": TEXTS}, event_time_format="iso")
    engine = penstock.Engine(query, lateness="1 SECOND", keep_dropped=True)
    a = pa.table({"id": [1, 2, 3], "x": [7, 7, 7], "ts": ["2026-03-01 12:00:00", "x", None]})
    b = [{"id": 9, "x": 7, "ts": "2026-03-01T12:00:01Z"}, {"id": 8, "x": 7, "ts": "2026-02-30"}]
    answer = engine.push({"A": a, "B": b})
    assert answer.to_pylist() == [{"a": 1, "b": 9}]
    assert engine.metrics()["null_time"] == 3
    assert sum(len(each.rows) for each in engine.drain_dropped()) == 3


def test_one_format_is_for_the_streams_that_have_texts() -> None:
    plain = TEXTS.set(2, pa.field("ts", pa.timestamp("ms")))
    query = penstock.parse(QUERY, {"A": TEXTS, "B": plain}, event_time_format="%d.%m.%Y")
    engine = penstock.Engine(query)
    day = datetime.datetime(2026, 3, 1)
    a = pa.table({"id": [1], "x": [7], "ts": ["01.03.2026"]})
    b = pa.table({"id": [9], "x": [7], "ts": [day]}, schema=plain)
    assert engine.push({"A": a, "B": b}).num_rows == 1
    again = penstock.Engine.restore(query, engine.checkpoint())
    assert again.push({"A": a}).num_rows == 1


def test_wrong_formats_are_refused_in_one_line() -> None:
    numbers = TEXTS.set(2, pa.field("ts", pa.int64()))
    for schema, formats in (
        (TEXTS, "yyyy-MM-dd"),
        (TEXTS, 7),
        (TEXTS, {"C": "iso"}),
        (numbers, {"A": "iso"}),
    ):
        with pytest.raises(OptionError, match="event_time_format") as caught:
            penstock.parse(QUERY, {"A": schema, "B": schema}, event_time_format=formats)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
    with pytest.raises(QueryError, match="event_time_format='iso'"):
        penstock.parse(QUERY, {"A": TEXTS, "B": TEXTS})

"""The Kafka example against a real broker, if Java packages can be had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kafka_broker import CONNECTOR, NoKafka, broker
from maven_jars import NoJars, jars

import penstock.spark.jobs.job_session as job_session
from penstock.job import read_job
from penstock.job.job import LANES

pytestmark = pytest.mark.xdist_group("spark")

EXAMPLE = Path(__file__).parents[3] / "examples" / "kafka" / "job.toml"


def event(minute: int, **columns: object) -> dict[str, object]:
    return {**columns, "ts": f"2026-01-01T12:{minute:02}:00Z"}


REJECTED = """
[rejected]
format = "kafka"
encode = "json"
options = { "kafka.bootstrap.servers" = "${KAFKA}", topic = "rejected" }
"""
MESSAGES: list[dict[str, list[dict[str, object] | str]]] = [
    {
        "orders": [event(0, id=1, item="atlas"), event(1, id=2, item="globe"), "{no order"],
        "payments": [event(2, order=1, city="Graz")],
        "parcels": [event(3, order=9, city="Oslo")],
    },
    {
        "orders": [event(4, id=3, item="clock")],
        "payments": [event(5, order=2, city="Riga"), event(5, order=3, city="Lyon")],
        "parcels": [event(6, order=1, city="Oslo"), event(7, order=2, city="Kyoto")],
    },
]


@pytest.mark.parametrize("lane", LANES)
def test_from_kafka_to_kafka(lane: str, tmp_path: Path) -> None:
    """Orders of the first run meet payments and parcels of the second; what is no JSON goes to a
    topic of its own."""
    program = Path(__file__).parents[1] / "kafka_round_trip.py"
    job = tmp_path / "job.toml"
    job.write_text(f'lane = "{lane}"\n{EXAMPLE.read_text()}{REJECTED}')
    try:
        connector = jars(CONNECTOR)
        with broker(tmp_path) as address:
            done = subprocess.run(
                [sys.executable, str(program), str(job), json.dumps(MESSAGES)],
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
                env={
                    **os.environ,
                    "KAFKA": address,
                    "CHECKPOINT": str(tmp_path / "checkpoint"),
                    "TRIGGER": "available-now",
                    "PENSTOCK_MASTER": "local[2,4]",
                    job_session.ARGUMENTS: f"--jars {','.join(map(str, connector))} pyspark-shell",
                },
            )
    except (NoJars, NoKafka) as reason:
        pytest.skip(str(reason))
    assert done.returncode == 0, done.stderr[-3_000:]
    warned, found, rejected = json.loads(done.stdout.splitlines()[-1])
    assert not [text for text in warned if "how long it keeps rows" in text]  # The broker does.
    ((_, broken),) = rejected
    assert (broken["source"], broken["reason"]) == ("orders", "unreadable")
    assert broken["value"] == "{no order"
    assert sorted(found) == [
        ["1", {"id": 1, "item": "atlas", "paid_in": "Graz", "sent_from": "Oslo"}],
        ["2", {"id": 2, "item": "globe", "paid_in": "Riga", "sent_from": "Kyoto"}],
    ]


def test_the_connector_is_asked_for_unless_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(read_job(EXAMPLE, {}), lane="dataframes")
    monkeypatch.delenv(job_session.ARGUMENTS, raising=False)
    (package,) = job_session.needed_packages(job)
    assert package == CONNECTOR[0]  # The one that the round trip is tested with.
    monkeypatch.setenv(job_session.ARGUMENTS, "--jars spark-sql-kafka-0-10_2.13.jar pyspark-shell")
    assert job_session.needed_packages(job) == []

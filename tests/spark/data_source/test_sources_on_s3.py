"""Sources, ledger and orders on an object store, by the settings of Hadoop's connector."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest
from s3_server import BUCKET, REGION, USER, files, s3_server
from test_stream_reader import Driver, rows

from penstock.errors import CheckpointError, InputError
from penstock.job import read_job
from penstock.sources.file_source import FileSource
from penstock.sources.object_store import store_options
from penstock.spark.data_source.job_options import job_options
from penstock.spark.data_source.options import lane_of
from penstock.testing import Oracle, difference

SECRET = "a word that nobody sees"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("moto", reason="needs moto, an S3 server")
    with s3_server(tmp_path_factory.mktemp("s3")) as address:
        yield address


def settings_for(endpoint: str) -> dict[str, str]:
    """Those of the bucket go first."""
    return {
        "fs.s3a.endpoint": "http://127.0.0.1:1",
        f"fs.s3a.bucket.{BUCKET}.endpoint": endpoint,
        "fs.s3a.endpoint.region": REGION,
        "fs.s3a.access.key": USER,
        "fs.s3a.secret.key": SECRET,
        "fs.s3a.path.style.access": "true",
    }


def upload(store: pf.FileSystem, path: str, table: pa.Table) -> None:
    content = io.BytesIO()
    pq.write_table(table, content)
    with store.open_output_stream(path) as out:
        out.write(content.getvalue())


@pytest.mark.parametrize("seed", range(2))
def test_everything_is_objects(seed: int, endpoint: str, tmp_path: Path) -> None:
    """With restarts, batches that are done again, and other cells; nothing is on this machine."""
    chance = random.Random(seed)
    store, place = files(endpoint), f"{BUCKET}/{tmp_path.name}"
    addresses = {name: f"s3a://{place}/{name}" for name in ("A", "B", "checkpoint")}
    options = {f"{name}.path": addresses[name] for name in "AB"} | settings_for(endpoint)
    options |= {"checkpointLocation": addresses["checkpoint"], "orders": addresses["checkpoint"]}
    for name in "AB":
        upload(store, f"{place}/{name}/_begun.parquet", rows(chance, 0))
    driver = Driver(tmp_path, **options)
    oracle = Oracle(driver.reader._lane.query, 1_000)
    expected: list[list[tuple[Any, ...]]] = [[]]
    for number in range(8):
        push = {name: rows(chance, number / 2, 20) for name in "AB"}
        for name, table in push.items():
            upload(store, f"{place}/{name}/{number}.parquet", table)
        assert driver.plan()
        expected.append(oracle.push(push))
        if chance.random() < 0.3:
            driver.run(commit=False)
        assert difference(driver.run(), expected[-1]) is None
        if chance.random() < 0.4:
            driver.options["cells"] = str(chance.choice([1, 2, 3]))
            driver.start()
    back = chance.randint(2, 6)
    del driver.log[back:]
    driver.start()
    while driver.plan():
        assert difference(driver.run(), expected[len(driver.log) - 1]) is None
    assert len(driver.log) == len(expected)
    assert sum(map(len, expected)) > 50
    kept = store.get_file_info(pf.FileSelector(f"{place}/checkpoint/penstock"))
    assert sum(each.path.endswith(".entry") for each in kept) == 8
    assert os.listdir(tmp_path) == []
    lane = driver.reader._lane
    for each in (lane, lane.sources["A"], lane.ledger, lane.orders):
        assert SECRET not in repr(each)


def test_what_cannot_be_reached_is_told_without_secrets(endpoint: str, tmp_path: Path) -> None:
    nowhere = settings_for(endpoint) | {f"fs.s3a.bucket.{BUCKET}.endpoint": "http://127.0.0.1:1"}
    options = {"A.path": f"s3a://{BUCKET}/no/A", "B.path": f"s3a://{BUCKET}/no/B"}
    with pytest.raises((InputError, CheckpointError)) as told:
        Driver(tmp_path, **options, **nowhere).plan()
    assert "s3a://lake/no/A" in str(told.value)
    assert SECRET not in str(told.value)


def test_settings_of_a_job_are_those_of_its_sources(endpoint: str, tmp_path: Path) -> None:
    """Those of other buckets and of other things stay where they are."""
    settings = {f"spark.hadoop.{name}": value for name, value in settings_for(endpoint).items()}
    settings |= {"spark.hadoop.fs.s3a.bucket.other.secret.key": "x", "spark.ui.enabled": "false"}
    told = "".join(f'"{name}" = "{value}"\n' for name, value in settings.items())
    (tmp_path / "B").mkdir()
    columns = 'schema = "id BIGINT, ts TIMESTAMP, x BIGINT"'
    (tmp_path / "job.toml").write_text(
        'query = "SELECT A.id FROM A [RANGE 1 HOUR], B [RANGE 1 HOUR] WHERE A.x = B.x"\n'
        'checkpoint = "state"\n'
        f'[sources.A]\nformat = "parquet"\npath = "s3a://{BUCKET}/A"\n{columns}\n'
        f'[sources.B]\nformat = "parquet"\npath = "B"\n{columns}\n'
        f'[sink]\nformat = "parquet"\npath = "out"\n[spark]\n{told}'
    )
    options = job_options(read_job(tmp_path / "job.toml"))
    found = {name: value for name, value in options.items() if name.startswith("fs.")}
    wanted = settings_for(endpoint)
    del wanted["fs.s3a.path.style.access"]  # It is Arrow's way with every endpoint.
    assert found == wanted
    lane = lane_of({name: value for name, value in options.items() if name != "checkpointLocation"})
    by_source = {n: s.tree.store for n, s in lane.sources.items() if isinstance(s, FileSource)}
    assert by_source == {"A": store_options(f"s3a://{BUCKET}/A", wanted.get), "B": ()}
    assert dict(by_source["A"])["endpoint_override"] == endpoint.removeprefix("http://")

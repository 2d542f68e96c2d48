"""A job on an object store, stopped and restarted: the oracle's answer, its orders, its owner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import context_run
import pyarrow.fs as pf
import pytest
import s3_run
from maven_jars import NoJars
from page_block import block_of
from s3_server import BUCKET, REGION, USER, connector, files, s3_server

from penstock.job.job import LANES
from penstock.spark.state.plan_orders import NAME

pytestmark = pytest.mark.xdist_group("spark")

PINNED = "((B A) C)"
SECONDS = 1_800


def write_job(folder: Path, lane: str, query: str = context_run.QUERY) -> None:
    page = block_of("object-storage.md", "toml")
    columns = ", ".join(f"{name} BIGINT" for name in context_run.SCHEMA.names)
    place = f"s3a://{BUCKET}/join"
    sources = "".join(
        f'[sources.{name}]\nformat = "parquet"\npath = "{place}/{name}"\n'
        f'watermark = "10 SECONDS"\nschema = "{columns}"\noptions.maxFilesPerTrigger = 1\n'
        for name in context_run.STREAMS
    )
    (folder / "job.toml").write_text(
        f'query = """{query}"""\ncheckpoint = "{place}/checkpoint"\ncells = 2\n'
        f'lane = "{lane}"\ntrigger = "available-now"\nevent_time = "ts"\n{sources}'
        f'[sink]\nformat = "parquet"\npath = "{place}/results"\n'
        f"{page[page.index('[spark]') :]}"
        '"spark.driver.memory" = "1g"\n"spark.master" = "local[2,4]"\n'
    )


def outcome(folder: Path, endpoint: str, *more: str) -> dict[str, Any]:
    """What the program tells that runs the job of ``folder`` in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(s3_run.__file__), str(folder), *more],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "S3_ENDPOINT": endpoint,
            "S3_REGION": REGION,
            "S3_KEY": USER,
            "S3_SECRET": USER,
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


@pytest.mark.parametrize("lane", LANES)
def test_a_job_that_is_all_objects(lane: str, tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="needs moto, an S3 server")
    try:
        connector()
    except NoJars as reason:
        pytest.skip(str(reason))
    work = tmp_path / "work"
    context_run.write_rows(work, batches=4)
    write_job(tmp_path, lane)
    with s3_server(tmp_path) as endpoint:
        store = files(endpoint)

        def deliver(batches: range) -> None:
            for name in context_run.STREAMS:
                for batch in batches:
                    content = (work / name / f"{batch}.parquet").read_bytes()
                    with store.open_output_stream(f"{BUCKET}/join/{name}/{batch}.parquet") as out:
                        out.write(content)

        deliver(range(2))
        first = outcome(tmp_path, endpoint, PINNED)
        assert first["failure"] is None, first
        assert (first["kind"], first["orders"]) == ("Start", [""])
        assert NAME in {
            Path(each.path).name
            for each in store.get_file_info(pf.FileSelector(f"{BUCKET}/join/checkpoint"))
        }
        deliver(range(2, 4))
        again = outcome(tmp_path, endpoint)
        assert again["failure"] is None, again
        assert (again["kind"], again["plans"]) == ("Restart", [PINNED])
        assert again["batches"][0] == first["batches"][-1] + 1
        if lane == "dataframes":  # In the other, rows are read again by any query.
            write_job(tmp_path, lane, context_run.QUERY.replace("A.y = C.y", "A.x = C.x"))
            refused = outcome(tmp_path, endpoint)["refused"]
            assert "which belongs to another query" in refused
        pf.copy_files(f"{BUCKET}/join/results", str(work / "results"), source_filesystem=store)
    assert context_run.found(work) == context_run.expected(work) != []
    assert (tmp_path / "job.events.jsonl").is_file()

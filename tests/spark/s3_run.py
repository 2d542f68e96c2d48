"""A job whose streams, checkpoint and sink are objects of a store.

``s3_run.py FOLDER [PLAN]``: runs FOLDER/job.toml until its streams are read, with an order
to pin PLAN if one is given, and prints a line of JSON with what its events told.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import s3_server

from penstock.errors import PenstockError
from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.job_session import job_session
from penstock.spark.jobs.prepared_job import prepare
from penstock.telemetry import Batch, Event, Order


def run(folder: Path, plan: str | None) -> dict[str, Any]:
    job = read_job(folder / "job.toml")
    job = replace(job, spark={**s3_server.settings(), **job.spark})
    spark = job_session(job)
    events: list[Event] = []
    try:
        with JobRun(prepare(job, spark)) as running:
            events.append(running.start())
            if plan is not None:
                events.append(running.order({"command": "pin", "plan": plan}))
            while not running.ended:
                events += running.poll(0.2)
    except PenstockError as error:
        return {"refused": str(error)}
    finally:
        spark.stop()
    batches = [each for each in events if isinstance(each, Batch)]
    return {
        "kind": type(events[0]).__name__,
        "failure": None if running.failure is None else running.failure.reason,
        "orders": [each.refused for each in events if isinstance(each, Order)],
        "batches": [each.batch for each in batches],
        "plans": sorted({cell.plan for cell in batches[-1].cells}) if batches else [],
    }


if __name__ == "__main__":
    wanted = sys.argv[2] if len(sys.argv) > 2 else None
    print(json.dumps(run(Path(sys.argv[1]), wanted)), flush=True)

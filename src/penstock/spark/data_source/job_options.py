"""A job file as options of the data source: ``option("job", "job.toml")``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from penstock.job import read_job
from penstock.job.job import Job, Source
from penstock.sources.object_store import Setting, store_settings

JOB = "job"
"""The option that names a job file."""


def with_job(options: Mapping[str, str]) -> dict[str, str]:
    """``options`` with those of the job file that they name, if they do; what is given beside it
    counts more."""
    given = {name.lower(): str(value) for name, value in options.items()}
    file = given.pop(JOB, None)
    if file is None:
        return given
    return {name.lower(): value for name, value in job_options(read_job(file)).items()} | given


def job_options(job: Job, setting: Setting | None = None) -> dict[str, str]:
    """``job`` as options of ``format("penstock")``. ``setting`` tells settings of the session;
    where there is none, those of the job."""
    options = {
        "query": job.query,
        "eventTime": job.event_time,
        "checkpointLocation": job.checkpoint,
        "cells": str(job.cells),
        "plan": job.plan,
    }
    if job.max_ahead != "default":
        options["maxAhead"] = "off" if job.max_ahead == "off" else f"{job.max_ahead} MILLISECONDS"
    if job.idle is not None:
        options["idle"] = f"{job.idle} MILLISECONDS"
    if job.max_results is not None:
        options["maxResults"] = str(job.max_results)
    if job.max_halt is not None:
        options["maxHalt"] = f"{job.max_halt} MILLISECONDS"
    for name in ("adapt", "feedback"):
        if (value := getattr(job, name)) is not None:
            options[name] = value
    if job.overload is not None:
        options["overload"] = json.dumps(job.overload.given())
    if job.limits is not None:
        given = {k: v for k, v in asdict(job.limits).items() if v is not None}
        options["limits"] = json.dumps(given)
    if job.spill_folder is not None:
        options["spillFolder"] = job.spill_folder
    if job.hot:
        options["hot"] = json.dumps({column: list(values) for column, values in job.hot.items()})
    if job.flush:
        options["flush"] = "true"
    if isinstance(job.trigger, int) and job.trigger:
        options["trigger"] = f"{job.trigger} MILLISECONDS"
    for name, source in job.sources.items():
        options |= {f"{name}.{key}": value for key, value in _source_options(source).items()}
    told = setting or job.spark.get
    addresses = [job.checkpoint, *(source.path or "" for source in job.sources.values())]
    return options | store_settings(addresses, lambda name: told(f"spark.hadoop.{name}"))


def _source_options(source: Source) -> dict[str, str]:
    options = dict(source.options) | {"format": source.format}
    if source.path is not None:
        options["path"] = source.path
    if source.schema is not None:
        options["schema"] = source.schema
    if source.decode is not None:
        options["decode"] = source.decode
    if source.static:
        options["static"] = "true"
    if source.event_time is not None:
        options["eventTime"] = source.event_time
    if source.event_time_format is not None:
        options["eventTimeFormat"] = source.event_time_format
    if source.watermark is not None:
        options["watermark"] = f"{source.watermark} MILLISECONDS"
    if source.rate is not None:
        options["rate"] = str(source.rate)
    return options

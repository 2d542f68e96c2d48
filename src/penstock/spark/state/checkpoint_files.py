"""Penstock's own small files in a checkpoint folder, wherever that is.

Beside what Spark keeps there, a job has two files: whose the checkpoint is
(:mod:`penstock.spark.state.checkpoint_owner`) and what people have ordered
(:mod:`penstock.spark.state.plan_orders`); and versions of static relations that are refreshed
(:mod:`penstock.spark.state.static_versions`). The driver writes them, and cells, which run in
Python workers on any host, read them. So they have to reach the folder without Java: on this
machine as files, elsewhere with ``pyarrow.fs``, which has S3, Google's and Azure's stores, and HDFS
where its library is installed. An object appears as a whole or not at all, as a renamed file does.

Endpoint, region and keys of S3 are those that the session has for Hadoop's connector
(:mod:`penstock.sources.object_store`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from penstock.job.job import local_path
from penstock.sources.object_store import Options, open_store, store_options
from penstock.telemetry.private_file import read_private, replace_private

_HADOOP = "spark.hadoop."
_REQUEST_SECONDS = 5.0
"""Time for one request: cells ask in every batch, and an order may wait for the next one."""


@dataclass(frozen=True, slots=True)
class CheckpointFiles:
    """Small files of the folder at ``address``; ``options`` are Arrow's for its store."""

    address: str
    options: Options = field(default=(), repr=False)  # With keys.

    @classmethod
    def of(cls, address: str, spark: SparkSession) -> CheckpointFiles:
        """The files at ``address`` by the settings that ``spark`` has for it."""
        folder = local_path(address)
        if folder is not None:
            return cls(os.path.abspath(folder))
        options = store_options(address, lambda name: spark.conf.get(_HADOOP + name, None))
        return cls(address, options)

    def read(self, name: str) -> bytes:
        """What is in the file ``name``; ``OSError`` if it is not there or cannot be read."""
        folder = local_path(self.address)
        if folder is not None:
            return read_private(folder / name)
        files, path = _store(self.address, self.options)
        with files.open_input_stream(f"{path}/{name}") as stream:
            content: bytes = stream.readall()
        return content

    def write(self, name: str, content: bytes) -> None:
        """Replace the file ``name`` as a whole; it is durable when this returns."""
        folder = local_path(self.address)
        if folder is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            replace_private(folder / name, content)
            return
        files, path = _store(self.address, self.options)
        with files.open_output_stream(f"{path}/{name}") as stream:
            stream.write(content)

    def remove(self, name: str) -> None:
        """Remove the file ``name``; nothing happens if it is not there."""
        folder = local_path(self.address)
        if folder is not None:
            (folder / name).unlink(missing_ok=True)
            return
        files, path = _store(self.address, self.options)
        with suppress(FileNotFoundError):
            files.delete_file(f"{path}/{name}")

    def names(self, folder: str) -> list[str] | None:
        """Names in the ``folder`` below; None if it is not there."""
        local = local_path(self.address)
        if local is not None:
            below = local / folder
            return [each.name for each in below.iterdir()] if below.is_dir() else None
        files, path = _store(self.address, self.options)
        selector = fs.FileSelector(f"{path}/{folder}".rstrip("/"), allow_not_found=True)
        found = files.get_file_info(selector)
        return [Path(each.path).name for each in found] or None

    def problem(self) -> str | None:
        """Why the folder cannot be reached; None if it can."""
        if local_path(self.address) is not None:
            return None
        try:
            self.names("offsets")
        except OSError as error:
            return " ".join(str(error).split())
        return None


@lru_cache(maxsize=8)
def _store(address: str, options: Options) -> tuple[fs.FileSystem, str]:
    """Arrow's file system for ``address``, and the path in it; ``OSError`` if there is none."""
    limits = {"request_timeout": _REQUEST_SECONDS, "connect_timeout": _REQUEST_SECONDS}
    try:
        return open_store(address, options, limits)
    except (pa.ArrowException, ImportError) as error:
        raise OSError(f"pyarrow.fs has no file system for {address} ({error})") from None

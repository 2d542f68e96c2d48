"""A checkpoint on an object store, written by renaming: a warning.

Spark's own managers of checkpoint files write under another name and rename. A store copies and
deletes instead: a second driver may come between, and a driver that dies in between leaves half.
Spark's module for clouds has a manager that writes the object itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from penstock.errors import PenstockWarning

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
WHOLE_OBJECTS = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
_STORES = ("s3a", "s3n", "s3", "gs", "oss", "cosn", "obs", "wasb", "wasbs")
"""Schemes of stores that have no renaming. ABFS has it, and so has HDFS."""
_RENAMING = ("FileContextBasedCheckpointFileManager", "FileSystemBasedCheckpointFileManager")


def warn_of_renaming(address: str, setting: Callable[[str, None], str | None]) -> None:
    """Warn if files of the checkpoint at ``address`` will be renamed on a store that cannot.

    >>> warn_of_renaming("/data/checkpoint", {}.get)
    """
    scheme, is_address, _ = address.partition("://")
    manager = setting(MANAGER, None) or _RENAMING[0]
    if is_address and scheme in _STORES and manager.endswith(_RENAMING):
        warnings.warn(
            f"found the checkpoint {address} with Spark's usual {MANAGER}, which renames files, "
            f"and {scheme} cannot: a second driver may spoil the checkpoint; expected "
            f"{WHOLE_OBJECTS} with the jar spark-hadoop-cloud, or a checkpoint on a file system",
            PenstockWarning,
            stacklevel=3,
        )

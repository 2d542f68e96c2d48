"""Checkpoints that Spark would rename where nothing can be renamed: one warning, and only there."""

from __future__ import annotations

import warnings

import pytest

from penstock.errors import PenstockWarning
from penstock.spark.state.checkpoint_manager import MANAGER, WHOLE_OBJECTS, warn_of_renaming

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing."


@pytest.mark.parametrize("scheme", ["s3a", "gs"])
@pytest.mark.parametrize("manager", [None, f"{CHECKPOINTS}FileSystemBasedCheckpointFileManager"])
def test_a_store_without_renaming(scheme: str, manager: str | None) -> None:
    settings = {} if manager is None else {MANAGER: manager}
    with pytest.warns(PenstockWarning, match=f"{scheme} cannot.*{WHOLE_OBJECTS}") as found:
        warn_of_renaming(f"{scheme}://lake/state", settings.get)
    assert len(found) == 1
    assert "\n" not in str(found[0].message)


@pytest.mark.parametrize(
    ("address", "manager"),
    [
        ("s3a://lake/state", WHOLE_OBJECTS),
        ("s3a://lake/state", "com.acme.OurOwnManager"),
        ("/data/state", None),
        ("file:///data/state", None),
        ("hdfs://host/state", None),
        ("abfss://lake@host/state", None),
    ],
)
def test_nothing_is_said_where_it_is_right(address: str, manager: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_renaming(address, {MANAGER: manager}.get)

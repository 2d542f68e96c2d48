"""Stores of objects: what is known of them when they are opened."""

from __future__ import annotations

import pytest
from pyarrow import fs

from penstock.sources.object_store import Options, open_store

KEYS: Options = (("access_key", "a user"), ("secret_key", "a word"))


def region_of(options: Options, limits: dict[str, float] | None = None) -> str:
    system, path = open_store("s3a://lake/orders/", options, limits)
    assert isinstance(system, fs.S3FileSystem)
    assert path == "lake/orders"
    return str(system.region)


def test_a_bucket_is_looked_for_where_nothing_says_its_region(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def resolve(bucket: str) -> str:
        asked.append(bucket)
        return "eu-north-1"

    monkeypatch.setattr(fs, "resolve_s3_region", resolve)
    assert region_of(KEYS) == "eu-north-1"
    assert region_of((), {"connect_timeout": 1.0}) == "eu-north-1"
    assert asked == ["lake", "lake"]
    assert region_of((*KEYS, ("region", "eu-west-3"))) == "eu-west-3"
    assert region_of((*KEYS, ("endpoint_override", "localhost:1"))) != "eu-north-1"
    assert asked == ["lake", "lake"]


def test_a_region_that_cannot_be_found_out_is_left_to_arrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(bucket: str) -> str:
        raise OSError("nobody answers")

    before = region_of((*KEYS, ("endpoint_override", "localhost:1")))
    monkeypatch.setattr(fs, "resolve_s3_region", resolve)
    assert region_of(KEYS) == before

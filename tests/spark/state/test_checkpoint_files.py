"""Small files in checkpoint folders, here and in a store that keeps objects."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from s3_server import BUCKET, USER, s3_server

from penstock.spark.operator.evolution import forget_seeds
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_owner import last_batch


class Settings(dict[str, str]):
    """A session that has only settings."""

    @property
    def session(self) -> MagicMock:
        session = MagicMock()
        session.conf.get.side_effect = lambda name, default=None: self.get(name, default)
        return session


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("moto", reason="needs moto, an S3 server")
    with s3_server(tmp_path_factory.mktemp("s3")) as address:
        yield address


def test_here_they_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("state/checkpoint", f"file://{tmp_path}/state/checkpoint"):
        files = CheckpointFiles.of(address, Settings().session)
        assert files.address == f"{tmp_path}/state/checkpoint"
    assert files.problem() is None
    assert last_batch(files) is None
    files.write("a", b"1")
    files.write("a", b"2")
    assert files.read("a") == b"2"
    assert os.listdir(tmp_path / "state" / "checkpoint") == ["a"]
    assert last_batch(files) is None
    for name in ("offsets/0", "offsets/1", "commits/0", "commits/.1.tmp"):
        path = tmp_path / "state" / "checkpoint" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert last_batch(files) == 0


def settings_for(endpoint: str) -> Settings:
    return Settings(
        {
            "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1",
            f"spark.hadoop.fs.s3a.bucket.{BUCKET}.endpoint": endpoint,
            "spark.hadoop.fs.s3a.access.key": USER,
            "spark.hadoop.fs.s3a.secret.key": USER,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        }
    )


def test_elsewhere_they_are_objects(endpoint: str) -> None:
    """By Hadoop's settings; those of a bucket go first."""
    settings = settings_for(endpoint)
    files = CheckpointFiles.of(f"s3a://{BUCKET}/deep/checkpoint", settings.session)
    assert USER not in repr(files)
    assert files.problem() is None
    assert last_batch(files) is None
    with pytest.raises(OSError, match="does not exist"):
        files.read("a")
    files.write("a", b"1")
    files.write("a", b"2")
    assert files.read("a") == b"2"
    files.write("offsets/0", b"")
    assert last_batch(files) == -1
    files.write("commits/0", b"")
    files.write("commits/12", b"")
    assert last_batch(files) == 12
    other = CheckpointFiles.of("s3a://no-such-bucket/x", settings.session)
    assert other.problem()


@pytest.mark.parametrize("place", ["", "/", "/listed", "/listed/deep/"])
def test_the_folder_itself_is_listed(place: str, endpoint: str) -> None:
    """Seeds lie beside Spark's folders and are found by name; a bucket alone is a folder, too."""
    settings = settings_for(endpoint)
    files = CheckpointFiles.of(f"s3a://{BUCKET}{place}", settings.session)
    for name in ("penstock.seed-1", "penstock.seed-2", "penstock.owner", "state/0/0/1.delta"):
        files.write(name, b"")
    found = files.names("")
    assert found is not None
    ours = {"penstock.seed-1", "penstock.seed-2", "penstock.owner", "state"}
    assert ours <= {*found}
    assert files.names("state") == ["0"]
    assert files.names("none") is None
    forget_seeds(files)
    assert {*(files.names("") or ())} == {*found} - {"penstock.seed-1", "penstock.seed-2"}
    assert files.read("penstock.owner") == b""


def test_what_cannot_be_reached_is_told_in_one_line() -> None:
    files = CheckpointFiles.of("dbfs:/somewhere/checkpoint", Settings().session)
    problem = files.problem()
    assert problem is not None
    assert problem.startswith("pyarrow.fs has no file system for dbfs:/somewhere/checkpoint (")
    assert "\n" not in problem
    assert last_batch(files) is None

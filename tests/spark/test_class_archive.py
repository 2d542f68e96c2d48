"""The archive of Java's classes: for which Java it is, when it is used, and that it is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.class_archive import archive_of, archive_options, make_archive
from penstock.spark.java import Java


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def java(folder: Path, release: str) -> Java:
    folder.mkdir(exist_ok=True)
    (folder / "release").write_text(release)
    return Java(folder, 17, "PATH")


def test_every_build_of_java_has_its_own(tmp_path: Path) -> None:
    one = archive_of(java(tmp_path / "one", "17.0.1"))
    assert one == archive_of(java(tmp_path / "one", "17.0.1"))
    assert one != archive_of(java(tmp_path / "two", "17.0.1"))
    assert one != archive_of(java(tmp_path / "one", "17.0.2"))


def test_it_is_used_only_where_it_is(tmp_path: Path) -> None:
    mine = java(tmp_path / "java", "17.0.1")
    assert archive_options(mine) == ""
    archive_of(mine).touch()
    assert f"-XX:SharedArchiveFile={archive_of(mine)}" in archive_options(mine)


def failing(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], 1, "", "…\nno room on the disk\n")


def endless(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    raise subprocess.TimeoutExpired("python", 600)


@pytest.mark.parametrize(
    ("run", "told"), [(failing, "could not be made: no room on the disk"), (endless, "in 600 sec")]
)
def test_a_run_that_fails_leaves_nothing(
    run: Callable[..., subprocess.CompletedProcess[str]],
    told: str,
    tmp_path: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(PenstockError, match=told):
        make_archive(java(tmp_path / "java", "17.0.1"))
    assert list(cache.rglob("*.jsa")) == []
    assert [p.name for p in (cache / "penstock").iterdir() if p.name.startswith("archive-")] == []


@pytest.mark.xdist_group("spark")
@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
def test_java_takes_its_classes_from_it(tmp_path: Path) -> None:
    archive = make_archive()
    assert archive is not None
    assert make_archive() is None
    log = tmp_path / "classes.log"
    program = (
        "import sys, penstock.spark;"
        "java = f'-Xlog:class+load:file={sys.argv[1]}';"
        "penstock.spark.session('local[1]', **{'spark.driver.extraJavaOptions': java}).stop()"
    )
    subprocess.run([sys.executable, "-c", program, str(log)], check=True, timeout=300)
    assert log.read_text().count("source: shared objects file (top)") > 3_000

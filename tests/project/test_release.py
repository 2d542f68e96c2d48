"""What belongs together for a release agrees: version, lock file, commands."""

from __future__ import annotations

import importlib.metadata
import os
import re
import tomllib
from pathlib import Path

import penstock

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere() -> None:
    assert penstock.__version__ == PROJECT["version"] == importlib.metadata.version("penstock")
    assert f"## [{penstock.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_lock_pins_every_requirement_by_hash() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pinned = {m[1]: m[2] for m in re.finditer(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE)}
    required = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
    for requirement in required:
        name = re.split(r"[<>=!~\[; ]", requirement)[0].lower()
        assert name in pinned, f"{name} is not in requirements.lock: run make lock"
    for entry in re.split(r"\n(?=[a-z])", lock.partition("\n")[2])[1:]:
        assert "--hash=sha256:" in entry
    assert "://" not in lock
    assert "penstock==" not in lock


def test_ci_runs_the_test_command_of_the_readme() -> None:
    ci = ROOT / ".ci" / "run"
    assert os.access(ci, os.X_OK)
    assert "make test" in ci.read_text()
    top = (ROOT / "README.md").read_text()[:1_000]
    assert "make demo" in top
    assert "make test" in top


def test_readme_and_help_know_the_same_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "lint", "bench", "lock", "clean", "help"} <= targets
    named = set(re.findall(r"\bmake ([a-z]+)\b", (ROOT / "README.md").read_text()))
    assert named <= targets

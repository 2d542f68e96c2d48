"""The import rules hold, and each of them can fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in ``folder`` against the project's rules."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-logo", "--no-cache"],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package with the rules, to be changed."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in ("penstock", "penstock_studies"):
        shutil.copytree(SOURCE / package, tmp_path / package, ignore=ignored)
    shutil.copy(ROOT / ".importlinter", tmp_path)
    rules = tmp_path / "tests" / "project"
    rules.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "project" / "import_rules.py", rules)
    return tmp_path


def test_the_rules_hold() -> None:
    checked = _lint(ROOT)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("file", "line", "broken"),
    [
        ("engine/state/clock.py", "import pyspark", "penstock.engine.state.clock imports pyspark"),
        ("cli/main.py", "import pyspark.sql", "penstock.cli.main imports pyspark"),
        (
            "cli/experiment.py",
            "import penstock_studies",
            "penstock.cli.experiment imports penstock_studies",
        ),
        (
            "engine/state/rows.py",
            "from penstock.engine.tree import join_tree",
            "penstock.engine.state is not allowed to import penstock.engine.tree",
        ),
        (
            "kernels/ring.py",
            "import pyarrow",
            "penstock.kernels.ring imports pyarrow",
        ),
        (
            "kernels/ring.py",
            "from penstock.engine.state import clock",
            "penstock.kernels.ring imports penstock.engine.state.clock",
        ),
        (
            "plan/notation.py",
            "def late():\n    import sqlglot",
            "penstock.plan.notation imports sqlglot",
        ),
        (
            "query/window.py",
            "from penstock.plan.plan import Plan",
            "penstock.query is not allowed to import penstock.plan",
        ),
        ("query/window.py", "import penstock", "penstock.query is not allowed to import"),
        (
            "plan/picture.py",
            "def late():\n    from penstock.plan import notation",
            "penstock.plan.picture imports itself by way of others",
        ),
        (
            "testing/oracle.py",
            "from penstock.engine.state.clock import Clock",
            "penstock.testing.oracle imports penstock.engine.state.clock",
        ),
        (
            "../penstock_studies/lab/report.py",
            "import matplotlib",
            "penstock_studies.lab.report imports matplotlib",
        ),
        (
            "spark/start/java.py",
            "from penstock.spark.processes import preload",
            "penstock.spark.start is not allowed to import penstock.spark.processes",
        ),
    ],
)
def test_a_forbidden_import_is_found(copy: Path, file: str, line: str, broken: str) -> None:
    with (copy / "penstock" / file).open("a") as source:
        source.write(f"\n{line}\n")
    checked = _lint(copy)
    assert checked.returncode == 1
    assert broken in checked.stdout, checked.stdout


def test_no_rule_has_an_exception() -> None:
    assert "ignore_imports" not in (ROOT / ".importlinter").read_text()


def test_a_new_package_needs_a_place(copy: Path) -> None:
    (copy / "penstock" / "helpers").mkdir()
    (copy / "penstock" / "helpers" / "__init__.py").touch()
    checked = _lint(copy)
    assert checked.returncode == 1
    assert "helpers" in checked.stdout

"""The house can be seen: folders with READMEs that name files that exist, tests laid out alike."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "penstock"
PACKAGES = sorted(each.parent for each in SOURCE.glob("*/__init__.py"))
FOLDERS = [
    *PACKAGES,
    *sorted(each.parent for each in (SOURCE / "engine").glob("*/__init__.py")),
]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda each: each.name)
def test_a_folder_has_a_readme_that_is_right(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert 3 < len(text.splitlines()) <= 45
    named = set(re.findall(r"`([a-z_0-9]+\.py)`", text))
    assert named <= {each.name for each in folder.glob("*.py")}
    if folder.name not in {"engine", "kernels"}:
        there = {each.name for each in folder.glob("*.py")} - {"__init__.py"}
        missing = there - named
        assert len(missing) <= len(there) // 3, f"{folder.name}/README.md does not name {missing}"


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    for name in re.findall(r"`([a-z_]+/[a-z_/0-9]+\.py)`", (ROOT / page).read_text()):
        places = [ROOT / name, SOURCE / name]
        assert any(each.exists() for each in places), f"{page} names {name}"


def test_tests_are_laid_out_like_the_source() -> None:
    """Every folder of tests is a package, or a folder of the engine."""
    tests = ROOT / "tests"
    packages = {each.parent.name for each in tests.glob("*/test_*.py")}
    assert packages - {"docs", "project", "studies"} <= {each.name for each in PACKAGES}
    folders = {each.parent.name for each in (tests / "engine").glob("*/test_*.py")}
    assert folders <= {each.name for each in FOLDERS}


TWINS = {
    "agenda": "engine/output/test_agenda.py",
    "aggregate": "engine/output/test_aggregation.py",
    "agreement": "engine/control/test_controller.py",
    "answer": "engine/push/test_plain_batches.py",
    "arrow_struct": "kernels/test_arrow_struct.py",
    "asked": "kernels/test_kernels.py",
    "asleep": "engine/feedback/test_waiting_in_window.py",
    "closing": "kernels/test_kernels.py",
    "composites": "engine/state/test_compiled_state.py",
    "guards": "engine/compiled/test_kinds.py",
    "demand": "engine/feedback/test_feedback.py",
    "door": "engine/overload/test_door.py",
    "group_table": "kernels/test_group_table.py",
    "heap": "kernels/test_heap.py",
    "index": "engine/state/test_rows.py",
    "intern": "values/test_interner.py",
    "lifespan": "kernels/test_kernels.py",
    "pairs": "kernels/test_kernels.py",
    "partition_hash": "kernels/test_partition_hash.py",
    "predicate": "values/test_predicate_program.py",
    "probe": "kernels/test_kernels.py",
    "probe_order": "engine/join/test_compiled_order.py",
    "push": "engine/compiled/test_compiled_push.py",
    "ration": "kernels/test_ration.py",
    "ring": "kernels/test_kernels.py",
    "rings": "engine/compiled/test_kinds.py",
    "surpassed": "engine/feedback/test_surpassed.py",
    "stable_hash": "values/test_interner.py",
    "whole_push": "engine/push/test_whole_push.py",
    "window": "kernels/test_window.py",
}
"""The test of each module of kernels that has its slow twin, or the reference push beside it."""
THROUGH_THE_ENGINE = {
    "agenda",
    "answer",
    "door",
    "guards",
    "index",
    "probe_order",
    "push",
    "rings",
}
"""Modules whose test calls what they are made for, and compares that with the reference push or
with plain Python; the tests of all others call the kernels themselves."""
WITHOUT_LOOPS = {
    "compilation",
    "cycles",
    "held_signals",
    "kernel",
    "kernel_files",
    "pointer",
    "prefetch",
    "tables",
}
"""What kernels are made with."""


def test_every_module_of_kernels_has_its_twin() -> None:
    modules = {each.stem for each in (SOURCE / "kernels").glob("*.py")} - {"__init__"}
    assert modules == TWINS.keys() | WITHOUT_LOOPS
    missing = {name for name in TWINS.values() if not (ROOT / "tests" / name).exists()}
    assert not missing
    direct = {name for name, test in TWINS.items() if name in _kernels_in(ROOT / "tests" / test)}
    assert direct == TWINS.keys() - THROUGH_THE_ENGINE


def _kernels_in(path: Path) -> set[str]:
    """The modules of kernels that the file at ``path`` imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "penstock.kernels":
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and "penstock.kernels." in str(node.module):
            found.add(str(node.module).rpartition(".")[2])
    return found

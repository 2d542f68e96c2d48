"""The house can be seen: folders with READMEs that name files that exist, tests laid out alike."""

from __future__ import annotations

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
    """Every folder of tests of the engine is a folder of the engine."""
    folders = {each.parent.name for each in (ROOT / "tests" / "engine").glob("*/test_*.py")}
    assert folders <= {each.name for each in FOLDERS}

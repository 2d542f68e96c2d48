"""What the pages about jobs and commands show is so: job files read, commands exist."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from penstock.cli import main as cli
from penstock.job import read_job
from penstock.job.read import job_of
from penstock.telemetry.events import KINDS, CellBatch, from_json

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = {"pip", "spark-submit", "venv-pack"}
"""Programs of others that pages tell to start."""
JOBS = sorted((ROOT / "examples").glob("*/job.toml"))


def blocks(page: Path, language: str) -> list[str]:
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_job_files_of_a_page(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "toml"):
        values = tomllib.loads(text)
        if "sources" not in values:
            values = tomllib.loads(JOBS[0].read_text()) | values
        for source in values["sources"].values():
            (tmp_path / source.get("path", "")).mkdir(exist_ok=True)
        (tmp_path / "query.cql").write_text("SELECT …")
        variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "given")
        job = job_of(values, tmp_path / "job.toml", variables)
        assert job.sources


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page(page: Path) -> None:
    targets = re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while "=" in words[0]:  # Variables of the environment.
                words.pop(0)
            name, *arguments = words
            if name == "make":
                assert arguments[0] in targets
                continue
            if (name, arguments[0]) == ("python", "-m"):
                assert importlib.util.find_spec(arguments[1]) is not None
                continue
            if Path(name).name in OTHERS:
                continue
            assert name == "penstock"
            options = cli.parser().parse_args(arguments)
            if (getattr(options, "job", None) or "job.toml") != "job.toml":  # The reader's own.
                assert read_job(ROOT / options.job, {}).sources


@pytest.mark.parametrize("file", JOBS, ids=lambda file: file.parent.name)
def test_examples_are_jobs_and_say_how_to_run_them(file: Path) -> None:
    assert read_job(file, {}).sources
    assert f"penstock run examples/{file.parent.name}/job.toml" in file.read_text()


def test_the_page_shows_the_example() -> None:
    (shown,) = blocks(ROOT / "docs" / "how-to" / "run-a-job.md", "toml")
    example, page = tomllib.loads((JOBS[0]).read_text()), tomllib.loads(shown)
    del example["sources"]["bids"]["rate"]
    assert page == example


def test_all_fields_of_events_are_described() -> None:
    page = ROOT / "docs" / "reference" / "events.md"
    text = page.read_text()
    for kind in (*KINDS.values(), CellBatch):
        for field in dataclasses.fields(kind):
            assert f"`{field.name}`" in text
    for name in KINDS:
        assert f"`{name}`" in text
    for block in blocks(page, "json"):
        assert from_json(block) is not None


def test_all_keys_of_jobs_are_described() -> None:
    from penstock.job import Job, Sink, Source

    text = (ROOT / "docs" / "reference" / "job-files.md").read_text()
    names = {field.name for kind in (Job, Sink, Source) for field in dataclasses.fields(kind)}
    for name in names - {"file", "sources", "sink", "spark"}:
        assert f"`{name}`" in text or f"`[{name}]`" in text

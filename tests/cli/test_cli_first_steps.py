"""The first five minutes: a job file that reads, and a Tab key that knows the commands."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import penstock
from penstock.cli import main as cli
from penstock.cli.completion import SHELLS, commands_of, script
from penstock.cli.ui import event_log
from penstock.job import read_job


def test_init_writes_a_job_that_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop" / "job.toml"
    assert cli.main(["init", str(file)]) == 0
    assert f"penstock run {file} --ui" in capsys.readouterr().out
    job = read_job(file, {})
    assert list(job.sources) == ["orders", "payments"]
    assert job.trigger == "available-now"
    shown = re.sub(r"^# (?=\[|[\w.]+ = )", "", file.read_text(), flags=re.MULTILINE)
    file.write_text(shown)
    (tmp_path / "shop" / "cities").mkdir()
    assert read_job(file, {}).sources["cities"].static


def test_the_query_of_init_is_one(tmp_path: Path) -> None:
    import pyarrow as pa

    file = tmp_path / "job.toml"
    cli.main(["init", str(file)])
    orders = pa.schema([("id", pa.int64()), ("item", pa.string()), ("ts", pa.timestamp("us"))])
    payments = pa.schema([("order", pa.int64()), ("city", pa.string()), ("ts", pa.timestamp("us"))])
    query = penstock.parse(read_job(file, {}).query, {"orders": orders, "payments": payments})
    assert query.schema.names == ["id", "item", "paid_in"]


def test_init_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.toml"
    file.write_text("mine")
    assert cli.main(["init", str(file)]) == 2
    assert "exists" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_completion_knows_every_command() -> None:
    commands = commands_of(cli.parser())
    assert "--ui" in commands["run"]
    for shell in SHELLS:
        text = script(shell, cli.parser())
        for name in commands:
            assert name in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("penstock dem", "demo"),
        ("penstock run --ui-", "--ui-port --ui-host --ui-stay"),
        ("penstock ui --ex", "--export"),
    ],
)
def test_completion_in_bash(line: str, expected: str) -> None:
    words = line.split()
    ask = (
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _penstock; "
        'echo "${COMPREPLY[@]}"'
    )
    program = script("bash", cli.parser()) + ask
    said = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == expected.split()


def test_ui_finds_the_log_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "checkpoint").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "out")
    assert cli.main(["ui", "."]) == 2
    assert ". is a folder and has no event log in it" in capsys.readouterr().err
    log = tmp_path / "out" / "checkpoint.events.jsonl"
    log.write_text("")
    for given in (".", "checkpoint", str(tmp_path / "out"), str(log)):
        assert event_log(Path(given)).resolve() == log
    monkeypatch.chdir(tmp_path / "out" / "checkpoint")
    assert event_log(Path(".")).resolve() == log
    (tmp_path / "out" / "other.events.jsonl").write_text("")
    assert cli.main(["ui", ".."]) == 2
    assert "has checkpoint.events.jsonl, other.events.jsonl; name one" in capsys.readouterr().err

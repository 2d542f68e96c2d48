"""The command line: help everywhere, one message for a mistake, no traceback."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import penstock
from penstock.cli import main as cli
from penstock.errors import PlanError

COMMANDS: tuple[list[str], ...] = (
    [],
    ["demo"],
    ["run"],
    ["ui"],
    ["init"],
    ["completion"],
    ["explain"],
    ["doctor"],
    ["bench"],
    ["bench", "engine"],
    ["experiment"],
    ["calibrate"],
    ["warm-up"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_shows_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert re.search(rf"example: penstock {' '.join(command)}", shown), shown


def test_no_command_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"penstock {penstock.__version__}\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["demo", "--plan", "((bids auctions)"], "plan"),
        (["demo", "--plan", "(bids persons)"], "auctions"),
        (["demo", "--rows", "0"], "--rows must be more than 0, not 0"),
        (["demo", "--seconds", "nan"], "--seconds must be more than 0"),
        (["demo", "--seed", "-1"], "--seed must be 0 or more"),
        (["demo", "--embedded", "--plan", "((bids auctions)"], "plan"),
        (["demo", "--embedded", "--plan", "(bids persons)"], "auctions"),
        (["run", "no/such/job.toml"], "no/such/job.toml: there is no such file"),
        (["explain", "no/such/job.toml"], "no/such/job.toml: there is no such file"),
        (["bench", "engine", "--workload", "W9"], "choose from: W1, W2s, W2j, W2u"),
        (["bench", "engine", "--plans", "bush"], "choose from: tree, mjoin"),
        (["bench", "engine", "--batch", "ten"], "write for example --batch 1,10000"),
        (["bench", "engine", "--batch", "0"], "1 or more"),
        (["bench", "engine", "--rows", "-5"], "1 or more"),
        (["bench", "engine", "--json", "no/such/folder/file.json"], "cannot write"),
        (["bench", "engine", "--workload", "W1", "--plan", "(A B)"], "C"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_mistake_is_one_message(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command) == cli.USER_ERROR
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert "Traceback" not in said.err


def test_an_unknown_command_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["dance"])
    assert ended.value.code == 2
    assert "dance" in capsys.readouterr().err


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("penstock.cli.demo.run.run_demo", broken)
    with pytest.raises(ZeroDivisionError):
        cli.main(["demo", "--embedded"])


def test_a_mistake_found_late_is_one_message_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PlanError("no such plan")

    monkeypatch.setattr("penstock.cli.demo.run.run_demo", refused)
    assert cli.main(["demo", "--embedded"]) == cli.USER_ERROR
    assert capsys.readouterr().err == "penstock: no such plan\n"


def test_without_spark_a_job_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        'query = "SELECT A.value FROM A [NOW]"\ncheckpoint = "state"\n'
        '[sources.A]\nformat = "rate"\n[sink]\nformat = "noop"\n'
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for command in (["run", str(job)], ["explain", str(job)], ["demo"]):
        assert cli.main(command) == cli.USER_ERROR
        told = "this needs Spark, and pyspark, pandas, protobuf cannot be found: pip install"
        assert told in capsys.readouterr().err


def test_an_interrupt_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.main", "demo", "--embedded", "--seconds", "3600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # It is running.
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=1_800)
    assert process.returncode == cli.INTERRUPTED
    assert "Traceback" not in errors

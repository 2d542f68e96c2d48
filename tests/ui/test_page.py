"""The page itself: nothing from elsewhere, nothing that makes markup of data; one file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import synthetic_run as synthetic

import penstock.ui
from penstock.cli import main as cli
from penstock.ui.page import exported_page, json_in_markup, live_page, script, static

STATIC = Path(penstock.ui.__file__).parent / "static"


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda file: file.name)
def test_no_markup_is_made_and_nothing_is_loaded_from_elsewhere(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in text
    assert "://" not in text
    assert not re.search(r"<[^>]+\son\w+=", text)


def test_every_script_is_part_of_the_page() -> None:
    for file in STATIC.glob("*.js"):
        assert file.read_text() in script()
    assert "<script>" not in live_page()


def test_json_cannot_end_its_block() -> None:
    text = json_in_markup({"x": "</script><!-- & -->"})
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"x": "</script><!-- & -->"}


def test_the_file_has_the_run_and_lets_only_our_script_run() -> None:
    page = exported_page({"job": "</script><script>alert(1)</script>"})
    assert page.count("<script") == 2
    assert "script-src 'sha256-" in page
    assert "alert(1)<" not in page
    assert static("page.css") in page


def test_the_command_writes_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "checkpoint.events.jsonl"
    log.write_text("".join(json.dumps(event) + "\n" for event in synthetic.run(5)))
    (tmp_path / "checkpoint").mkdir()
    out = tmp_path / "run.html"
    assert cli.main(["ui", str(tmp_path / "checkpoint"), "--export", str(out)]) == 0
    assert "9 events" in capsys.readouterr().out
    found = re.search(r'id="run">(.*?)</script>', out.read_text())
    assert found is not None
    assert json.loads(found[1])["totals"]["batches"] == 5


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ui", str(tmp_path / "nothing")]) == 2
    assert "no event log" in capsys.readouterr().err
    log = tmp_path / "log"
    log.write_text('{"version": 99, "event": "stop"}\n')
    assert cli.main(["ui", str(log)]) == 2
    assert "version 99" in capsys.readouterr().err
    log.write_text("")
    assert cli.main(["ui", str(log), "--export", str(tmp_path / "no" / "x.html")]) == 2
    assert "cannot write" in capsys.readouterr().err

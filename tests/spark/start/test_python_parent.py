"""Processes that are forked from one that has everything loaded, as Spark sees them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.spark.start import process_tree, worker_python
from penstock.spark.start.worker_python import VARIABLE, pythons, start_parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are forks on Linux alone")
PROGRAM = """
import json, os, sys, time
loaded = 'penstock.spark.data_source.stream_reader' in sys.modules
if sys.argv[1:] == ['wait']:
    print(os.getpid(), flush=True)
    time.sleep(600)
print(json.dumps([loaded, sys.argv[1:], os.getcwd(), os.environ.get('SAID'), input(), __name__]))
print('to error', file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The Python of a session with a parent of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(worker_python, "_parents", [])
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "told_program.py").write_text(PROGRAM)
    for name, value in pythons().items():
        monkeypatch.setenv(name, value)
    for name, value in start_parent().items():
        monkeypatch.setenv(name, value)
    with socket.socket(socket.AF_UNIX) as line:  # Until it has loaded everything.
        line.connect(os.environ[VARIABLE])
        assert line.recv(1)
    assert start_parent() == {}, "one is enough"
    yield os.environ["PYSPARK_PYTHON"]
    for parent in worker_python._parents:
        parent.communicate()
        assert parent.returncode in (0, -signal.SIGKILL)


def told(script: str, folder: Path) -> list[object]:
    done = subprocess.run(
        [script, "-m", "told_program", "one", "two words"],
        input="from here\n",
        cwd=folder / "a folder",
        env={**os.environ, "SAID": "yes"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "to error\n"
    found: list[object] = json.loads(done.stdout)
    return found


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_fork_is_the_program_with_everything_loaded(script: str, tmp_path: Path) -> None:
    folder = str(tmp_path / "a folder")
    expected = [["one", "two words"], folder, "yes", "from here", "__main__"]
    assert told(script, tmp_path) == [True, *expected]


def test_without_a_parent_it_is_python(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    assert told(script, tmp_path)[0] is False


def test_a_parent_that_has_ended_is_done_without(script: str, tmp_path: Path) -> None:
    (parent,) = worker_python._parents
    parent.kill()
    parent.wait()
    assert Path(os.environ[VARIABLE]).is_socket(), "nobody has tidied"
    assert told(script, tmp_path)[0] is False


def test_a_parent_that_is_busy_is_not_waited_for(script: str, tmp_path: Path) -> None:
    (parent,) = worker_python._parents
    late = Path(os.environ[VARIABLE] + ".late")
    assert not late.exists()
    parent.send_signal(signal.SIGSTOP)
    try:
        assert told(script, tmp_path)[0] is False
        assert late.exists(), "those who come next hardly wait"
        assert told(script, tmp_path)[0] is False
    finally:
        parent.send_signal(signal.SIGCONT)


def test_a_parent_that_has_become_ready_is_waited_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_python, "_parents", [])
    for name, value in pythons().items():
        monkeypatch.setenv(name, value)
    (address,) = start_parent().values()
    late = Path(f"{address}.late")
    late.touch()
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        assert line.recv(1)
    assert not late.exists()
    worker_python._parents[0].communicate()


def test_the_signal_to_end_is_passed_on(script: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [script, "-m", "told_program", "wait"],
        cwd=tmp_path / "a folder",
        stdout=subprocess.PIPE,
        text=True,
    ) as small:
        assert small.stdout is not None
        fork = int(small.stdout.readline())
        assert fork != small.pid
        assert process_tree.name(fork) == "told_program"
        small.send_signal(signal.SIGTERM)
        small.wait()
    until(lambda: not process_tree.command_line(fork))


def test_the_parent_ends_with_the_process_that_made_it(tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from penstock.spark.start.worker_python import pythons, start_parent\n"
        "os.environ |= pythons()\n"
        "print(start_parent()['PENSTOCK_PYTHON_PARENT'], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not Path(done.stdout.strip()).parent.exists()


def test_none_is_started_for_a_python_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_python, "_parents", [])
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert start_parent() == {}
    assert worker_python._parents == []

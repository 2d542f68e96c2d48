"""Processes that are forked from one that has everything loaded, as Spark sees them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import one_process
import pytest

from penstock.spark.processes import python_parent
from penstock.spark.start import process_tree, worker_python
from penstock.spark.start.worker_python import VARIABLE, pythons, start_parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there are forks on Linux alone")
PROGRAM = """
import json, os, pathlib, sys, time
loaded = 'penstock.spark.data_source.stream_reader' in sys.modules
if sys.argv[1:] == ['wait']:
    print(os.getpid(), flush=True)
    time.sleep(600)
if sys.argv[1:] == ['note']:
    pathlib.Path('noted').touch()
    sys.exit()
if sys.argv[1:] == ['zone']:
    print(time.strftime('%Z'))
    sys.exit()
if sys.argv[1:] == ['gone']:
    sys.exit(5)
if sys.argv[1:] == ['child'] and os.fork() == 0:
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
    assert (done.stderr, done.returncode) == ("to error\n", 3)
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
        assert one_process.name(fork) == "told_program"
        small.send_signal(signal.SIGTERM)
        small.wait()
    until(lambda: not one_process.command_line(fork))


def test_a_fork_outlives_the_parent(script: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [script, "-m", "told_program", "one"],
        cwd=tmp_path / "a folder",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as small:
        (parent,) = worker_python._parents
        until(lambda: len(process_tree.processes(parent.pid)) > 1)
        until(lambda: "told_program" in map(one_process.name, process_tree.processes(parent.pid)))
        parent.kill()
        parent.wait()
        answer, _ = small.communicate("later\n")
    assert json.loads(answer)[0] is True
    assert "later" in answer
    assert small.returncode == 3


def test_many_at_once(script: str, tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [script, "-m", "told_program", str(number)],
            cwd=tmp_path / "a folder",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for number in range(12)
    ]
    for number, small in enumerate(running):
        answer, _ = small.communicate("from here\n")
        assert json.loads(answer)[1] == [str(number)]


def test_what_a_fork_leaves_behind_is_not_waited_for(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [script, "-m", "told_program", "child"],
        input=b"from here\n",
        cwd=tmp_path / "a folder",
        check=False,
    )
    assert done.returncode == 3
    left = [
        p for p in os.listdir("/proc") if p.isdigit() and one_process.name(int(p)) == "told_program"
    ]
    for pid in left:
        if Path(f"/proc/{pid}/cwd").resolve() == tmp_path / "a folder":
            os.kill(int(pid), signal.SIGKILL)


def test_a_folder_that_is_gone_is_no_matter(script: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = f"cd {shlex.quote(str(gone))} && rmdir ../gone && exec {script} -m told_program gone"
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "a folder")}
    assert subprocess.run(["sh", "-c", program], env=environment, check=False).returncode == 5


def wish(folder: Path) -> tuple[socket.socket, bytes]:
    """A line to the parent on which a program is wished that leaves a note, and the fork's number,
    which is not answered yet."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(os.environ[VARIABLE])
    assert line.recv(1)
    told = {"arguments": ["-m", "told_program", "note"], "folder": str(folder)}
    content = json.dumps(told | {"environment": dict(os.environ)}).encode()
    socket.send_fds(line, [len(content).to_bytes(8, "little")], [0, 1, 2])
    line.sendall(content)
    return line, line.recv(8)


def test_a_fork_that_is_not_answered_does_nothing(script: str, tmp_path: Path) -> None:
    line, fork = wish(tmp_path / "a folder")
    line.close()
    until(lambda: not one_process.command_line(int.from_bytes(fork, "little")))
    assert not (tmp_path / "a folder" / "noted").exists()
    line, _ = wish(tmp_path / "a folder")
    with line:
        line.sendall(b"!")
        assert line.recv(1) == b"\0"
    assert (tmp_path / "a folder" / "noted").exists()


def test_a_fork_that_cannot_begin_says_nothing(script: str, tmp_path: Path) -> None:
    """A byte of an exit code would be the number of a process, and a signal go to that."""
    line, told = wish(tmp_path / "nowhere")
    with line:
        assert told == b""


def test_who_asked_may_take_his_time_to_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork that gave up while it was answered would be waited for, and nothing done."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    his, mine = socket.socketpair()
    with his, mine:
        mine.settimeout(1)
        his.sendall(b"!")
        assert python_parent._is_answered({"folder": str(tmp_path)}, mine)
        assert mine.gettimeout() is None


def test_a_fork_has_the_zone_of_the_one_who_asked(script: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [script, "-m", "told_program", "zone"],
        cwd=tmp_path / "a folder",
        env={**os.environ, "TZ": "XYZ3"},
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"XYZ\n"


def test_a_moment_in_which_the_parent_was_busy_is_forgotten(script: str, tmp_path: Path) -> None:
    late = Path(os.environ[VARIABLE] + ".late")
    late.touch()
    assert told(script, tmp_path)[0] is True
    until(lambda: not late.exists())


@pytest.mark.parametrize("before", ["a wish", "a fork"])
def test_a_parent_that_dies_in_between_is_done_without(
    before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "told_program.py").write_text(PROGRAM)
    address = str(tmp_path / "parent")
    monkeypatch.setenv(VARIABLE, address)

    def parent() -> None:
        with listening.accept()[0] as line:
            line.sendall(b"!")
            if before == "a fork":
                size, files, *_ = socket.recv_fds(line, 8, 3)
                line.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL)
                for file in files:
                    os.close(file)

    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor() as pool:
        listening.bind(address)
        listening.listen()
        dying = pool.submit(parent)
        assert told(pythons()["PYSPARK_PYTHON"], tmp_path)[0] is False
        dying.result()


@pytest.mark.parametrize("place", ["f" * 120, "nowhere"])
def test_where_there_is_no_place_for_it_there_is_none(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_python, "_parents", [])
    for name, value in pythons().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / place))
    if place != "nowhere":
        (tmp_path / place).mkdir()
    assert start_parent() == {}
    assert worker_python._parents == []
    assert [*tmp_path.glob("f*/*")] == []


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

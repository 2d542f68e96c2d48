"""Spark as people start it: each way works, and nothing that they have set is changed."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import context_run
import pyarrow.parquet as pq
import pyspark
import pytest
from page_block import block_of
from pyspark.sql import SparkSession
from two_hosts import await_port, free_port, two_hosts

import penstock
import penstock.spark
from penstock.spark.session import PARTITIONS, PROVIDER, ROCKSDB, SOCKETS
from penstock.spark.start.java import find_java
from penstock.testing import Oracle, rows_of

pytestmark = pytest.mark.xdist_group("spark")

BIN = Path(str(pyspark.__file__)).parent / "bin"
PROGRAM = str(context_run.__file__)
SECONDS = 1_800
BERLIN = "Europe/Berlin"
ZONE = "spark.sql.session.timeZone"
FILES = "spark.sql.streaming.checkpointFileManagerClass"
OF_ONE_MACHINE = (
    FILES,
    "spark.python.daemon.module",
    "spark.storage.blockManagerHeartbeatTimeoutMs",
    SOCKETS,
)


def _environment() -> dict[str, str]:
    """The variables of a user who has told Spark nothing, but where Java and Python are."""
    ours = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    paths = [str(Path(PROGRAM).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **ours,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # Nothing here runs long.
        "PYTHONPATH": os.pathsep.join(paths),
    }


def outcome(
    command: list[str],
    folder: Path,
    more: tuple[str, ...] = (),
    typed: str | None = None,
    **environment: str,
) -> dict[str, Any]:
    """What :mod:`context_run` prints when it is started by ``command``; its answer is checked.

    If something is ``typed``, ``command`` is a shell that reads it.
    """
    context_run.write_rows(folder)
    said, told = folder.parent / "said", folder.parent / "told"
    # Into files: a worker of Spark may outlive its parents for a while, and holds a pipe open.
    with said.open("wb") as out, told.open("wb") as errors:
        done = subprocess.run(
            command if typed is not None else [*command, PROGRAM, str(folder), *more],
            input=None if typed is None else typed.encode(),
            env={
                **_environment(),
                **environment,
            },
            stdout=out,
            stderr=errors,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, told.read_text()[-3_000:]
    assert context_run.found(folder) == context_run.expected(folder) != []
    lines = [line for line in said.read_text().splitlines() if line.startswith("{")]
    settings: dict[str, Any] = json.loads(lines[-1])
    return settings


def test_spark_submit_says_how(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.ui.port 0\n")
    command = [str(BIN / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g"]
    command += ["--conf", f"{ZONE}={BERLIN}"]
    found = outcome(command, tmp_path / "work", SPARK_CONF_DIR=str(conf))
    assert found["spark.master"] == "local[1]"
    assert found["spark.app.name"] == "context_run.py"
    assert found["spark.ui.enabled"] == "true"
    assert found[ZONE] == BERLIN
    assert found[PROVIDER] == ROCKSDB
    assert found[PARTITIONS] == "1"
    assert [found[name] for name in OF_ONE_MACHINE] == [None] * len(OF_ONE_MACHINE)
    assert "TieredStopAtLevel" not in found["spark.driver.extraJavaOptions"]


def test_a_file_of_defaults_counts_where_python_comes_first(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    lines = f"spark.master local[1,2]\n{ZONE} {BERLIN}\nspark.driver.extraJavaOptions -Da=b\n"
    (conf / "spark-defaults.conf").write_text(f"{lines}spark.driver.memory 1g\n")
    found = outcome([sys.executable], tmp_path / "work", SPARK_CONF_DIR=str(conf))
    assert found["spark.master"] == "local[1,2]"
    assert found[ZONE] == BERLIN
    assert found["spark.driver.extraJavaOptions"].endswith(" -Da=b")


def test_the_shell_of_pyspark(tmp_path: Path) -> None:
    """Its session was there first, as in a notebook that makes its own: that one is used."""
    command = [str(BIN / "pyspark"), "--master", "local[1]", "--driver-memory", "1g"]
    command += ["--conf", f"{ZONE}={BERLIN}", "--conf", "spark.ui.enabled=false"]
    typed = (
        "import context_run, penstock.spark\n"
        "assert penstock.spark.session() is spark\n"
        f"context_run.main({str(tmp_path / 'work')!r})\n"
    )
    # Python takes a pipe for a person, and starts what the shell starts with.
    found = outcome(command, tmp_path / "work", typed=typed, PYSPARK_DRIVER_PYTHON_OPTS="-i")
    assert found["spark.app.name"] == "PySparkShell"
    assert found["spark.master"] == "local[1]"
    assert found[ZONE] == BERLIN
    assert found[PROVIDER] == ROCKSDB
    assert [found[name] for name in OF_ONE_MACHINE] == [None] * len(OF_ONE_MACHINE)


@pytest.mark.skipif("PENSTOCK_LONG" not in os.environ, reason="long: set PENSTOCK_LONG=1")
def test_executors_in_processes_of_their_own_on_one_machine(tmp_path: Path) -> None:
    master = "local-cluster[2,1,1024]"
    found = outcome([sys.executable], tmp_path / "work", ("job",), PENSTOCK_MASTER=master)
    assert found["spark.master"] == master
    assert found["failure"] is None
    assert found["cells"] == [0, 1]
    assert found[PARTITIONS] == "2"


def test_a_cluster_whose_workers_have_folders_of_their_own(tmp_path: Path) -> None:
    """A master and two workers, each a process; executors find Penstock as they find pyspark."""
    conf = tmp_path / "conf"
    conf.mkdir()
    page = block_of("cluster.md", "properties")
    small = "spark.driver.memory 1g\nspark.executor.memory 600m\n"
    (conf / "spark-defaults.conf").write_text(f"{small}{page}")
    with two_hosts(tmp_path, cores=1) as address:
        found = outcome(
            [sys.executable],
            tmp_path / "work",
            ("job",),
            SPARK_CONF_DIR=str(conf),
            PENSTOCK_MASTER=address,
        )
    assert found["spark.master"] == address
    assert found["failure"] is None
    assert found["cells"] == [0, 1]
    assert [found[name] for name in OF_ONE_MACHINE] == [None] * len(OF_ONE_MACHINE)
    started = [len(list(each.glob("*/*"))) for each in sorted(tmp_path.glob("work-*"))]
    assert all(started), "both workers had an executor"


@pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs pyspark[connect]")
def test_spark_connect(tmp_path: Path) -> None:
    """The client has no Java: sessions, jobs in both lanes, their progress and orders, and a
    pipeline do without."""
    port = free_port()
    program, *arguments = shlex.split(block_of("connect.md", "sh", "SparkConnectServer"))
    command = [str(BIN / program), *arguments, "--driver-memory", "1g"]
    warehouse = f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}"
    for setting in ("spark.ui.enabled=false", f"{ZONE}={BERLIN}", warehouse):
        command += ["--conf", setting]
    command = [each.replace("port=15002", f"port={port}") for each in command]
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=_environment())
        try:
            await_port(port)
            remote = f"sc://127.0.0.1:{port}"
            found = outcome([sys.executable], tmp_path / "work", ("job",), SPARK_REMOTE=remote)
            source = outcome(
                [sys.executable], tmp_path / "read", ("job", "source"), SPARK_REMOTE=remote
            )
            piped = [_piped(tmp_path, remote) for _ in range(2)]
        finally:
            server.terminate()
            server.wait(60)
    for told, lane, folder in ((found, "dataframes", "work"), (source, "source", "read")):
        assert told["connect"]
        assert told["failure"] is None
        assert told["rows"] == 360
        assert told["results"] == len(context_run.expected(tmp_path / folder))
        assert told["cells"] == [0, 1]
        assert told["lane"] == lane
    assert found[ZONE] == BERLIN
    assert found[PROVIDER] == ROCKSDB
    assert [code for code, _ in piped] == [0, 0], piped
    text = re.search('"query": "(.*)"', block_of("data-source.md", "text", "pipelines as dp"))
    assert text is not None
    query = penstock.parse(text[1], schemas=dict.fromkeys("AB", context_run.SCHEMA))
    tables = {name: pq.read_table(tmp_path / "work" / name) for name in "AB"}
    answer = rows_of(pq.read_table(tmp_path / "warehouse" / "answer"))
    assert sorted(answer) == sorted(Oracle(query).push(tables)) != []


def _piped(folder: Path, remote: str) -> tuple[int, str]:
    """A run of the pipeline on the page, on a server of Spark Connect; its exit code and words."""
    pipeline = folder / "pipeline"
    (pipeline / "transformations").mkdir(parents=True, exist_ok=True)
    for kind, part, file in (
        ("yaml", "storage:", "spark-pipeline.yml"),
        ("text", "pipelines as dp", "transformations/answer.py"),
    ):
        data = f"{folder / 'work'}/"
        text = block_of("data-source.md", kind, part).replace("/data/", data)
        (pipeline / file).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", "run"],
        cwd=pipeline,
        env={**_environment(), "SPARK_REMOTE": remote},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout[-2_000:] + done.stderr[-2_000:]


def test_a_running_session_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    """As in a notebook or a shell: it is used, and keeps what it has and what it has not."""
    before = {name: spark.conf.get(name, None) for name in context_run.SETTINGS}
    mine = {ZONE: BERLIN, PARTITIONS: "3", "spark.sql.streaming.noDataMicroBatches.enabled": "true"}
    for name, value in mine.items():
        spark.conf.set(name, value)
    spark.conf.unset(FILES)
    spark.conf.unset(PROVIDER)
    try:
        assert penstock.spark.session("local[7]", "other") is spark
        assert {name: spark.conf.get(name) for name in mine} == mine
        assert spark.conf.get(FILES, None) is None
        assert spark.conf.get(PROVIDER) == ROCKSDB
        assert spark.conf.get("spark.master") == "local[2,4]"
        assert spark.conf.get("spark.app.name") == before["spark.app.name"]
        penstock.spark.session(spark__sql__shuffle__partitions=5)
        assert spark.conf.get(PARTITIONS) == "5"
        assert spark.conf.get(ZONE) == BERLIN
    finally:
        for name in mine:
            spark.conf.unset(name)
        for name in (ZONE, PARTITIONS, FILES, PROVIDER):
            if (kept := before[name]) is not None:
                spark.conf.set(name, kept)

"""A Spark cluster of two hosts on this machine: two addresses of the loopback interface.

Spark runs a speculative copy of a task on another host only, so ``local-cluster`` never does.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark

from penstock.spark.start.java import find_java

_HOSTS = ("127.0.0.1", "127.0.0.2")
_SECONDS = 600


@contextmanager
def two_hosts(folder: Path, cores: int = 2) -> Iterator[str]:
    """The address of the cluster; each host has ``cores``."""
    port = free_port()
    address = f"spark://{_HOSTS[0]}:{port}"
    started = []
    try:
        with (folder / "cluster.log").open("ab") as log:
            master = ["org.apache.spark.deploy.master.Master", "--host", _HOSTS[0]]
            started.append(_started(log, [*master, "--port", str(port), "--webui-port", "0"]))
            await_port(port)
            for host in _HOSTS:
                worker = ["org.apache.spark.deploy.worker.Worker", "--host", host]
                worker += ["--webui-port", "0", "--cores", str(cores), "--memory", "1g"]
                worker += ["--work-dir", str(folder / f"work-{host}"), address]
                started.append(_started(log, worker))
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(60)


def _started(log: IO[bytes], arguments: list[str]) -> subprocess.Popen[bytes]:
    program = Path(pyspark.__path__[0]) / "bin" / "spark-class"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return subprocess.Popen([str(program), *arguments], stdout=log, stderr=log, env=environment)


def await_port(port: int) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        with socket.socket() as probe:
            if probe.connect_ex((_HOSTS[0], port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the master of the cluster does not start")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOSTS[0], 0))
        return int(probe.getsockname()[1])

"""A Kafka broker for tests: its jars and those of Spark's connector through Maven, one process."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maven_jars import jars, java

KAFKA = "3.9.1"
CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"org.apache.kafka:kafka-clients:{KAFKA}",
    "org.apache.commons:commons-pool2:2.12.1",
)
"""The newest connector that is published; it works with Spark 4.3 too."""
_PARTS = """
    kafka_2.13 kafka-clients kafka-metadata kafka-server kafka-server-common kafka-raft
    kafka-storage kafka-storage-api kafka-group-coordinator kafka-group-coordinator-api
    kafka-transaction-coordinator kafka-tools-api
"""
BROKER = (
    *(f"org.apache.kafka:{name}:{KAFKA}" for name in _PARTS.split()),
    "org.scala-lang:scala-library:2.13.15",
    "org.scala-lang.modules:scala-java8-compat_2.13:1.0.2",
    "com.typesafe.scala-logging:scala-logging_2.13:3.9.5",
    "com.fasterxml.jackson.core:jackson-databind:2.16.2",
    "com.fasterxml.jackson.core:jackson-core:2.16.2",
    "com.fasterxml.jackson.core:jackson-annotations:2.16.2",
    "com.yammer.metrics:metrics-core:2.2.0",
    "net.sourceforge.argparse4j:argparse4j:0.7.0",
    "net.sf.jopt-simple:jopt-simple:5.0.4",
    "org.pcollections:pcollections:4.0.1",
    "org.slf4j:slf4j-api:1.7.36",
    "org.apache.zookeeper:zookeeper:3.8.4",
    "commons-validator:commons-validator:1.7",
)
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@localhost:{controller}
listeners=PLAINTEXT://localhost:{broker},SASL_PLAINTEXT://localhost:{sasl},\
CONTROLLER://localhost:{controller}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,\
SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_{user}="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
USER = "reader"
PASSWORD = "a word that nobody sees"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_START_SECONDS = 600


class NoKafka(Exception):  # noqa: N818 - the name states the finding
    """Why there is no Kafka for the tests."""


class RealBroker:
    """A broker with its data in ``folder``, which can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        classpath = os.pathsep.join(map(str, jars(BROKER)))
        self._port, sasl, controller = _free_ports(3)
        self._folder = folder
        self._properties = folder / "server.properties"
        self._properties.write_text(
            _PROPERTIES.format(
                broker=self._port,
                sasl=sasl,
                controller=controller,
                folder=folder,
                module=MODULE,
                user=USER,
                password=PASSWORD,
            )
        )
        self._java = [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath]
        made = [*self._java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg"]
        made += ["-c", str(self._properties)]
        subprocess.run(made, capture_output=True, check=True, timeout=600)
        self.address = f"localhost:{self._port}"
        self.guarded_address = f"localhost:{sasl}"
        """Where one says who one is: :data:`USER` with :data:`PASSWORD`."""
        self.start()

    def start(self) -> None:
        with (self._folder / "broker.log").open("a") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._properties)],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            _await(self._port, self._process)
        except NoKafka:
            self.kill()
            raise

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A running broker with its data in ``folder``; its address."""
    running = RealBroker(folder)
    try:
        yield running.address
    finally:
        running.kill()


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.1)
    raise NoKafka(f"the broker does not start (exit code {process.poll()})")


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("localhost", 0))
        return [probe.getsockname()[1] for probe in probes]

"""An object store for tests: moto's S3 server in a process of its own, and Spark's way to it.

Hadoop's connector asks for all of Amazon's library in one jar of 690 MB. The parts that it loads
have 14 MB, so these are named here, without the whole. Where they cannot be had, the reason is a
:class:`maven_jars.NoJars`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from maven_jars import jars
from pyarrow.fs import S3FileSystem
from two_hosts import await_port, free_port

BUCKET = "lake"
USER = "tester"
REGION = "us-east-1"
_SDK = "2.35.4"
_PARTS = """
    annotations apache-client arns auth aws-core aws-query-protocol aws-xml-protocol checksums
    checksums-spi crt-core endpoints-spi http-auth http-auth-aws http-auth-aws-eventstream
    http-auth-spi http-client-spi identity-spi json-utils metrics-spi netty-nio-client profiles
    protocol-core regions retries retries-spi s3 s3-transfer-manager sdk-core sts
    third-party-jackson-core utils utils-lite aws-json-protocol
"""
_OTHERS = (
    "software.amazon.eventstream:eventstream:1.0.1",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    "org.reactivestreams:reactive-streams:1.0.4",
    "org.apache.spark:spark-hadoop-cloud_2.13:4.1.2",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "commons-logging:commons-logging:1.2",
    "commons-codec:commons-codec:1.17.1",
)


def connector() -> list[Path]:
    """The jars with which Spark reads and writes ``s3a://``, for its version of Hadoop."""
    (hadoop,) = (Path(str(pyspark.__file__)).parent / "jars").glob("hadoop-client-api-*.jar")
    version = hadoop.stem.rpartition("-")[2]
    parts = [f"software.amazon.awssdk:{part}:{_SDK}" for part in _PARTS.split()]
    return jars([f"org.apache.hadoop:hadoop-aws:{version}", *parts, *_OTHERS])


def settings() -> dict[str, str]:
    """What Spark has to be told beside what the page says."""
    return {
        "spark.jars": ",".join(map(str, connector())),
        # Uploads by the asynchronous client take the server's "100 Continue" for the answer: with
        # Spark's Netty, at least, which is newer than the one that Amazon's library comes with.
        "spark.hadoop.fs.s3a.optimized.copy.from.local.enabled": "false",
        "spark.hadoop.fs.s3a.retry.limit": "2",
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
    }


def files(endpoint: str) -> S3FileSystem:
    """The same store by way of Arrow."""
    scheme, _, address = endpoint.partition("://")
    return S3FileSystem(
        access_key=USER,
        secret_key=USER,
        scheme=scheme,
        endpoint_override=address,
        region=REGION,
        allow_bucket_creation=True,
    )


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """The endpoint of a running server with an empty bucket; its messages go to ``folder``."""
    port = free_port()
    command = [sys.executable, "-c", "from moto.server import main; main()"]
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log, env=os.environ
        )
    try:
        await_port(port)
        endpoint = f"http://127.0.0.1:{port}"
        files(endpoint).create_dir(BUCKET)
        yield endpoint
    finally:
        server.terminate()
        server.wait(60)

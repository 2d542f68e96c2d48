"""Secrets by name and by origin: they are in no message, in no printed job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import OptionError
from penstock.job import Job, read_job
from penstock.job.redaction import forget_secrets, is_secret, note_secret, redacted

JOB = """
query = "SELECT A.id FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x"
checkpoint = "state"
[sources.A]
format = "kafka"
schema = "id BIGINT, x BIGINT, ts TIMESTAMP"
decode = "json"
[sources.A.options]
"kafka.bootstrap.servers" = "${BROKER}"
"kafka.sasl.jaas.config" = "Module required username='ann' password='by-name-inside';"
"kafka.ssl.key.password" = "by-name-1"
[sources.B]
format = "rate"
[sink]
format = "parquet"
path = "results"
[spark]
"hadoop.fs.s3a.secret.key" = "by-name-2"
"app.greeting" = "${GREETING}"
"""
SECRETS = ("by-name-inside", "by-name-1", "by-name-2", "broker.of.origin:9092", "hello-of-origin")


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """What one test notes as secret is not so in the next."""
    yield
    forget_secrets()


def read(folder: Path, text: str) -> Job:
    file = folder / "job.toml"
    file.write_text(text)
    environment = {"BROKER": "broker.of.origin:9092", "GREETING": "hello-of-origin", "N": "7x"}
    return read_job(file, environment)


def test_a_printed_job_tells_none(tmp_path: Path) -> None:
    text = repr(read(tmp_path, JOB))
    assert not [each for each in SECRETS if each in text]


def test_what_others_say_is_redacted(tmp_path: Path) -> None:
    read(tmp_path, JOB)
    said = redacted("cannot log in with " + " and ".join(SECRETS) + " at http://ann:pw-1@host/")
    assert not [each for each in (*SECRETS, "pw-1") if each in said]
    assert said.startswith("cannot log in with (not shown)")
    assert "${BROKER}" in said


@pytest.mark.parametrize(
    ("key", "value", "secret"),
    [
        ("trigger", '"${GREETING}"', "hello-of-origin"),
        ("trigger", '"${N} SECONDS"', "7x"),
        ("adapt", '"${GREETING}"', "hello-of-origin"),
        ("checkpoint", '"${GREETING}"', "hello-of-origin"),
    ],
)
def test_errors_show_the_variable(tmp_path: Path, key: str, value: str, secret: str) -> None:
    (tmp_path / "hello-of-origin").touch()  # A file where a folder is expected.
    text = JOB.replace('checkpoint = "state"\n', "") if key == "checkpoint" else JOB
    with pytest.raises(OptionError) as raised:
        read(tmp_path, f"{key} = {value}\n{text}")
    assert secret not in str(raised.value)
    assert "${" in str(raised.value)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    text = JOB.replace('"by-name-1"', '["by-name-1"]')
    with pytest.raises(OptionError, match=r"found \(not shown\)"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("kafka.sasl.jaas.config", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("fs.azure.account.key.store", True),
        ("spark.ssl.keyPassword", True),
        ("spark.driver.memory", False),
        ("maxFilesPerTrigger", False),
        ("spark.sql.shuffle.partitions", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_the_longer_secret_goes_first() -> None:
    note_secret("pass", "${A}")
    note_secret("password-1", "${B}")
    assert redacted("password-1, pass") == "${B}, ${A}"

"""Job files: read into a frozen value; every mistake is one line that names the key."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from penstock.engine.overload import overload
from penstock.errors import OptionError
from penstock.job import Job, Sink, Source, read_job
from penstock.job.job import Limits, local_path
from penstock.job.overload import ALLOCATORS, CHOICES, POLICIES, Overload
from penstock.job.redaction import forget_secrets
from penstock.overload import ALLOCATORS as ENGINE_ALLOCATORS
from penstock.telemetry import AlertRules

SMALL = """
query = "SELECT A.id FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x"
checkpoint = "state"
[sources.A]
format = "parquet"
path = "a"
[sources.B]
format = "rate"
[sink]
format = "parquet"
path = "results"
"""


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """What one test notes as secret is not so in the next."""
    yield
    forget_secrets()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    return tmp_path


def read(folder: Path, text: str, **environment: str) -> Job:
    file = folder / "job.toml"
    file.write_text(text)
    return read_job(file, environment)


def refused(folder: Path, text: str) -> str:
    with pytest.raises(OptionError) as error:
        read(folder, text)
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(str(folder / "job.toml"))
    return message.removeprefix(f"{folder / 'job.toml'}: ")


def test_a_small_job_has_defaults(folder: Path) -> None:
    job = read(folder, SMALL)
    assert job == Job(
        name="job",
        query="SELECT A.id FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] WHERE A.x = B.x",
        sources={
            "A": Source("A", "parquet", str(folder / "a")),
            "B": Source("B", "rate"),
        },
        sink=Sink("parquet", str(folder / "results")),
        checkpoint=str(folder / "state"),
        file=folder / "job.toml",
    )
    assert job.event_log == folder / "state.events.jsonl"
    with pytest.raises(dataclasses.FrozenInstanceError):
        job.cells = 2  # type: ignore[misc]


def test_everything_that_a_job_may_say(folder: Path) -> None:
    (folder / "query.cql").write_text("SELECT A.id FROM A [ROWS 3], B\n")
    job = read(
        folder,
        """
        name = "everything"
        query_file = "query.cql"
        checkpoint = "s3a://bucket/state"
        event_time = "at"
        trigger = "1.5 minutes"
        cells = 4
        hot = { "A.x" = [17, 4] }
        plan = "((A B) C)"
        adapt = "on"
        feedback = "jit"
        overload.policy = "shed"
        overload.cpu = 0.4
        overload.choice = "newest"
        overload.audit = 0.2
        overload.allocator = "grepp"
        overload.burst = 0
        overload.seed = 7
        limits = { cpu = 0.5, memory = "1.5 GiB", disk = 0 }
        spill_folder = "."
        spark.driver.memory = "2g"
        spark.sql.shuffle.partitions = 8
        [sources.A]
        format = "kafka"
        decode = "json"
        schema = "id BIGINT, at TIMESTAMP"
        watermark = "250 MILLISECONDS"
        rate = 1e5
        select = ["id", "at + INTERVAL 1 SECOND AS at"]
        event_time = "when"
        options.subscribe = "topic-${STAGE}"
        options.kafka.bootstrap.servers = "${BROKERS:-localhost:9092}"
        options.failOnDataLoss = false
        [sources.B]
        format = "csv"
        path = "${PLACE}/b.csv"
        static = true
        [sink]
        format = "kafka"
        encode = "json"
        key = "id"
        mode = "append"
        options.topic = "joined"
        """,
        STAGE="test",
        PLACE="hdfs://there",
    )
    assert job.query == "SELECT A.id FROM A [ROWS 3], B"
    assert job.event_log == folder / "job.events.jsonl"
    assert (job.trigger, job.cells, job.plan) == (90_000, 4, "((A B) C)")
    assert job.adapt == "on"
    assert job.hot == {"A.x": (17, 4)}
    assert (job.feedback, job.event_time) == ("jit", "at")
    assert job.overload == Overload(
        "shed", cpu=0.4, choice="newest", audit=0.2, allocator="grepp", burst=0.0, seed=7
    )
    assert job.limits == Limits(0.5, 3 << 29, disk=0)
    assert job.spill_folder == str(folder)
    assert job.spark == {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "8"}
    a, b = job.sources["A"], job.sources["B"]
    assert a.options == {
        "subscribe": "topic-test",
        "kafka.bootstrap.servers": "localhost:9092",
        "failOnDataLoss": "false",
    }
    assert (a.watermark, a.rate, a.event_time, a.decode) == (250, 1e5, "when", "json")
    assert a.select == ("id", "at + INTERVAL 1 SECOND AS at")
    assert b.path == "hdfs://there/b.csv"
    assert b.static
    assert job.sink == Sink("kafka", None, {"topic": "joined"}, (), "json", "id")


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [('"available-now"', "available-now"), ('"Available Now"', "available-now"), ('"2 s"', None)],
)
def test_triggers(folder: Path, trigger: str, expected: object) -> None:
    text = f"trigger = {trigger}\n{SMALL}"
    if expected is None:
        assert refused(folder, text).startswith('trigger: found "2 s", expected a duration')
    else:
        assert read(folder, text).trigger == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("checkpoint =", "chekpoint =", "checkpoint: found nothing, expected a folder for Spark's "
         'state; there is "chekpoint": did you mean checkpoint?'),
        ('path = "results"', 'paht = "results"', "sink.paht: found an unknown key, expected one "
         "of encode, format, key, mode, options, partition_by, path; did you mean path?"),
        ('"rate"', '"rat"', 'sources.B.format: found "rat", expected a format of Spark; did you '
         "mean rate?"),
        ('format = "rate"', "format = 7", "sources.B.format: found 7, expected a format of Spark, "
         "such as parquet, json, csv or kafka"),
        ('path = "a"', 'path = "aa"', "sources.A.path: found no folder FOLDER/aa, expected an "
         "existing folder, which may be empty; did you mean a?"),
        ('path = "a"\n', "", "sources.A.path: found nothing, expected the folder with the parquet "
         "files"),
        ('path = "a"\n', 'path = "a"\noptions.maxFilePerTrigger = 1\n',
         "sources.A.options.maxFilePerTrigger: found an unknown option, expected one that Spark "
         "has for parquet; did you mean maxFilesPerTrigger?"),
        ('path = "a"\n', 'path = "a"\noptions.x = [1]\n',
         "sources.A.options.x: found a list, expected a text, a number, true or false"),
        ('path = "a"\n', 'path = "a"\nwatermark = "5 SECONS"\n',
         'sources.A.watermark: found "5 SECONS", expected a duration such as "5 SECONDS" '
         "(MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS); did you mean SECONDS?"),
        ('path = "a"\n', 'path = "a"\nwatermark = 5\n', "sources.A.watermark: found 5, expected a "
         'duration such as "5 SECONDS" (MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS)'),
        ('path = "a"\n', 'path = "a"\nwatermark = "1 DAY"\nstatic = true\n',
         "sources.A.watermark: found a watermark, expected none: the source is static"),
        ('path = "a"\n', 'path = "a"\nstatic = "yes"\n',
         'sources.A.static: found "yes", expected true or false'),
        ('path = "a"\n', 'path = "a"\nrate = -1\n',
         "sources.A.rate: found -1, expected rows per second, more than 0"),
        ('path = "a"\n', 'path = "a"\nselect = "id"\n', 'sources.A.select: found "id", expected a '
         'list of SQL expressions, such as ["value AS id"]'),
        ('path = "a"\n', 'path = "a"\ndecode = "jsn"\nschema = "a INT"\n',
         'sources.A.decode: found "jsn", expected one of json; did you mean json?'),
        ('path = "a"\n', 'path = "a"\ndecode = "json"\n', "sources.A.schema: found nothing, "
         "expected the columns of the decoded values, as DDL text"),
        ('path = "a"\n', 'path = "${NOWHERE}"\n', "sources.A.path: found ${NOWHERE}, expected the "
         "variable NOWHERE in the environment; set it, or give a value for the case that it is "
         "not: ${NOWHERE:-…}"),
        ('"rate"', '"kafka"\nschema = "a INT"', 'sources.B.decode: found nothing, expected "json", '
         "since the schema of a Kafka source is that of its values"),
        ("[sink]", '[sink]\nmode = "update"', 'sink.mode: found "update", expected "append": '
         "results of a join are never taken back"),
        ("[sink]", '[sink]\nkey = "id"', 'sink.encode: found nothing, expected "json", where there '
         "is a key"),
        ('path = "results"', "", "sink.path: found nothing, expected the folder for the results"),
        ('path = "results"', 'path = "job.toml"', "sink.path: found the file FOLDER/job.toml, "
         "expected a folder"),
        ("[sink]", "[sink.x]", "sink.format: found nothing, expected a format of Spark, such as "
         "parquet, json, csv or kafka"),
        ("checkpoint =", "cells = 0\ncheckpoint =", 'cells: found 0, expected a whole number of 1 '
         'or more, or "auto"'),
        ("checkpoint =", 'cells = "many"\ncheckpoint =', 'cells: found "many", expected a whole '
         'number of 1 or more, or "auto"'),
        ("checkpoint =", 'trigger = "continuous"\ncheckpoint =', 'trigger: found "continuous", '
         'expected "available-now" or an interval such as "5 SECONDS"; Spark\'s continuous mode '
         "has no state, and a join needs it"),
        ("checkpoint =", 'trigger = "availablenow!"\ncheckpoint =', 'trigger: found '
         '"availablenow!", expected "available-now" or an interval such as "5 SECONDS"; did you '
         "mean available-now?"),
        ("checkpoint =", "flush = true\ncheckpoint =", "flush: found true, expected trigger = "
         '"available-now" beside it: a run that ends'),
        ("checkpoint =", 'limits.memory = "2 TB"\ncheckpoint =', 'limits.memory: found "2 TB", '
         'expected a size such as "512 MB" (B, KB, MB, GB, KiB, MiB, GiB) or a number of bytes'),
        ("checkpoint =", 'limits.memry = "2 GB"\ncheckpoint =', "limits.memry: found an unknown "
         "key, expected one of cpu, disk, memory, probes; did you mean memory?"),
        ("checkpoint =", 'spill_folder = "gone"\ncheckpoint =', 'spill_folder: found "gone", '
         "expected a folder on a local disk that exists"),
        ("checkpoint =", "hot.A.x = [1]\ncheckpoint =", "hot.A: found a table, expected columns "
         'with lists of values, such as { "A.x" = [17, 4] }; is the column in quotes: "A.x"?'),
        ("checkpoint =", "spark = 3\ncheckpoint =", "spark: found 3, expected a table of names and "
         "values"),
        ("checkpoint =", 'query_file = "q"\ncheckpoint =', 'query_file: found "q", expected either '
         "query or query_file, not both"),
        ("query =", "qery =", "query: found nothing, expected the text of the query, or "
         "query_file"),
        ("checkpoint =", "checkpoint ", "not TOML: Expected '=' after a key in a key/value pair "
         "(at line 3, column 13)"),
    ],
    ids=lambda value: re.sub(r"\W+", "-", value)[:40] if isinstance(value, str) else None,
)  # fmt: skip
def test_a_mistake_is_one_line(folder: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    found = refused(folder, SMALL.replace(old, new))
    assert found == message.replace("FOLDER", str(folder))


def test_relations_that_are_refreshed(folder: Path) -> None:
    text = SMALL.replace('path = "a"', 'path = "a"\nstatic = true\nrefresh = "10 MINUTES"')
    assert read(folder, text).refreshed == {"A": 600_000}
    assert read(folder, text.replace("10 MINUTES", "asked")).refreshed == {"A": "asked"}
    assert read(folder, SMALL).refreshed == {}
    wrong = text.replace("static = true\n", "")
    expected = 'found "10 MINUTES", expected nothing: the source is a stream; is it static?'
    assert refused(folder, wrong) == f"sources.A.refresh: {expected}"
    zero = text.replace("10 MINUTES", "0 MINUTES")
    assert refused(folder, zero).startswith('sources.A.refresh: found "0 MINUTES", expected an in')


def test_an_overload_policy_by_its_name_or_as_a_table(folder: Path) -> None:
    def with_overload(value: str) -> str:
        return SMALL.replace("checkpoint =", f"overload = {value}\ncheckpoint =")

    assert read(folder, with_overload('"defer"')).overload == Overload("defer")
    alone = read(folder, with_overload('{ policy = "defer" }')).overload
    assert alone == Overload("defer")
    assert alone.given() == {"policy": "defer"}
    shed = 'policy = "shed", '
    for value, message in (
        ('"shedd"', 'overload: found "shedd", expected one of exact, shed, defer; did you mean sh'),
        ("3", "overload: found 3, expected one of exact, shed, defer"),
        ("{ cpu = 0.5 }", "overload.policy: found nothing, expected one of exact, shed, defer"),
        (f"{{ {shed} cpus = 1 }}", "overload.cpus: found an unknown key, expected one of alloca"),
        (f"{{ {shed} cpu = 0 }}", "overload.cpu: found 0, expected a share of a core, more than"),
        (f'{{ {shed} seconds = "1" }}', 'overload.seconds: found "1", expected seconds per mi'),
        (f"{{ {shed} cpu = 1, probes = 9 }}", "overload: found probes and cpu, expected one budg"),
        (f"{{ {shed} audit = 1.5 }}", "overload.audit: found 1.5, expected a share of the probes"),
        (f"{{ {shed} burst = -1 }}", "overload.burst: found -1, expected seconds, 0 or more"),
        (f"{{ {shed} seed = 0.5 }}", "overload.seed: found 0.5, expected a whole number, 0 or mo"),
        (f'{{ {shed} choice = "best" }}', 'overload.choice: found "best", expected one of random,'),
        (f'{{ {shed} allocator = "grep" }}', 'overload.allocator: found "grep", expected one of '),
        (
            f'{{ {shed} allocator = "random-shedding", probes = 9 }}',
            'overload.allocator: found "random-shedding", expected policy = "shed" and a budget',
        ),
        (
            f"{{ {shed} cpu = 0.5 }}\nlimits.probes = 1000",
            "limits.probes: found 1000, expected no second budget beside overload.cpu",
        ),
    ):
        assert refused(folder, with_overload(value)).startswith(message), value


def test_names_of_policies_are_those_of_the_engine() -> None:
    assert get_args(overload.Policy) == POLICIES
    assert get_args(overload.Chosen) == CHOICES
    assert sorted(ENGINE_ALLOCATORS) == sorted(ALLOCATORS)
    options = [field.name for field in dataclasses.fields(overload.Overload)]
    assert [field.name for field in dataclasses.fields(Overload)] == options


def test_alerts(folder: Path) -> None:
    text = (
        SMALL
        + """
[alerts]
webhook = "https://hooks.example.com/${SECRET}"
command = "notify --to 'the night shift'"
late_share = 0.01
rejected_share = 0.02
lag = "5 MINUTES"
no_batch = "1 HOUR"
"""
    )
    rules = read(folder, text, SECRET="x").alerts
    assert rules == AlertRules(
        ("notify", "--to", "the night shift"), "https://hooks.example.com/x", 0.01, 0.02, 300, 3600
    )
    for old, new, message in (
        ("late_share = 0.01", "late_share = 1.5", "alerts.late_share: found 1.5, expected a share"),
        ('lag = "5 MINUTES"', 'lag = "soon"', "alerts.lag: found"),
        ("the night shift'", "the night shift", "alerts.command: found"),
        ("https://hooks", "ftp://hooks", "alerts.webhook: found"),
        ("no_batch", "nobatch", "alerts.nobatch: found an unknown key"),
    ):
        assert refused(folder, text.replace("${SECRET}", "x").replace(old, new)).startswith(message)
    assert refused(folder, SMALL + "[alerts]\nlate_share = 0.1\n").startswith(
        "alerts.webhook: found nothing, expected a webhook or a command"
    )


def test_a_key_of_before_is_told_to_have_no_effect(folder: Path) -> None:
    before = SMALL.replace("checkpoint =", 'state_folder = "windows"\ncheckpoint =')
    with pytest.warns(FutureWarning, match="state_folder: has no effect any more, leave it out"):
        assert read(folder, before) == read(folder, SMALL)


def test_what_must_be_there(folder: Path) -> None:
    head, _, rest = SMALL.partition("[sources.A]")
    assert refused(folder, head).startswith("sources: found nothing, expected a table [sources.")
    sources = rest.partition("[sink]")[0]
    assert refused(folder, f"{head}[sources.A]{sources}").startswith("sink: found nothing")


def test_files_that_are_not_there_or_not_toml(folder: Path) -> None:
    (folder / "auctions.toml").touch()
    with pytest.raises(OptionError, match=r"no such file; did you mean auctions\.toml\?"):
        read_job(folder / "auction.toml")
    with pytest.raises(OptionError, match=r"found \.yaml, expected a job file in TOML"):
        read_job(folder / "job.yaml")
    with pytest.raises(OptionError, match="cannot be read"):
        read_job(folder / "a")
    missing = SMALL.replace("query =", "name =").replace('"SELECT', '"S')
    assert refused(folder, f'query_file = "none.cql"\n{missing}').startswith(
        'query_file: found "none.cql", expected a file that can be read'
    )


@pytest.mark.parametrize(("old", "key"), [("state", "checkpoint"), ("results", "sink.path")])
def test_a_folder_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, old: str, key: str
) -> None:
    locked = folder / "locked"
    locked.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked)
    found = refused(folder, SMALL.replace(f'"{old}"', f'"locked/deeper/{old}"'))
    expected = "which cannot be written, expected a folder that can be written"
    assert found == f"{key}: found {locked}, {expected}"


def test_addresses() -> None:
    assert local_path("/a/b") == Path("/a/b")
    assert local_path("file:///a/b") == Path("/a/b")
    assert local_path("a/b:c") == Path("a/b:c")
    assert local_path("s3a://bucket/a") is None

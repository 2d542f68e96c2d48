"""Job files: TOML to a :class:`~penstock.job.job.Job`, or one line that says what is wrong.

Whatever can be checked without Spark is checked here, folders of this machine included. Paths are
relative to the folder of the job file. What a file may have is in ``docs/reference/job-files.md``.
"""

from __future__ import annotations

import glob
import os
import shlex
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from penstock.errors import OptionError
from penstock.job.job import (
    LANES,
    NO_FOLDER,
    Job,
    Lane,
    Limits,
    Refresh,
    Sink,
    Source,
    Trigger,
    local_path,
)
from penstock.job.mistake import did_you_mean, mistake
from penstock.job.overload import overload_in
from penstock.job.spark_options import FILE_FORMATS, OPTIONS, READABLE, WRITABLE
from penstock.job.table import Table
from penstock.telemetry.alerts import AlertRules


def read_job(file: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Job:
    """The job in ``file``; :class:`OptionError` with one line if there is a mistake in it."""
    path = Path(file)
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        raise OptionError(f"{path}: found {path.suffix}, expected a job file in TOML (.toml)")
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        others = sorted(each.name for each in path.parent.glob("*.toml"))
        hint = did_you_mean(path.name, others, 0.5)
        raise OptionError(f"{path}: there is no such file{f'; {hint}' if hint else ''}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path}: not TOML: {error}") from None
    return job_of(values, path, environment)


def job_of(
    values: Mapping[str, Any], path: Path, environment: Mapping[str, str] | None = None
) -> Job:
    """The job with the ``values`` of the file at ``path``."""
    top = Table(str(path), "", values, environment)
    folder = path.resolve().parent
    query = _query(top, folder)
    tables = top.tables("sources")
    if not tables:
        raise top.missing("sources", "a table [sources.NAME] for each stream of the query")
    sources = {name: _source(t, name, folder) for name, t in tables.items()}
    table = top.table("sink")
    if table is None:
        raise top.missing("sink", "a table [sink] with the format and path of the results")
    job = Job(
        name=top.text("name") or path.stem,
        query=query,
        sources=sources,
        sink=_sink(table, folder),
        checkpoint=_address(top.required_text("checkpoint", "a folder for Spark's state"), folder),
        event_time=top.text("event_time", "the name of a column") or "ts",
        trigger=_trigger(top),
        flush=top.flag("flush"),
        cells=_cells(top),
        hot=_hot(top.take("hot"), top),
        lane=cast(Lane | None, top.choice("lane", LANES)),
        plan=top.text("plan", 'a plan such as "((A B) C)", "auto", or "cacq"') or "auto",
        adapt=top.choice("adapt", ("auto", "on", "off")),
        feedback=top.text("feedback"),
        overload=overload_in(top),
        limits=_limits(top.table("limits")),
        spill_folder=_spill_folder(top, folder),
        idle=top.duration("idle"),
        max_ahead=_max_ahead(top),
        max_results=_max_results(top),
        max_halt=top.duration("max_halt"),
        late=_side_sink(top, "late", folder),
        rejected=_side_sink(top, "rejected", folder),
        alerts=_alerts(top.table("alerts")),
        spark={
            name if name.startswith("spark.") else f"spark.{name}": value
            for name, value in top.settings("spark").items()
        },
        file=path,
    )
    if top.text("state_folder", "nothing") is not None:
        warnings.warn(f"{top.where('state_folder')}: {NO_FOLDER}", FutureWarning, stacklevel=3)
    top.end()
    if job.flush and job.trigger != "available-now":
        raise top.wrong("flush", job.flush, 'trigger = "available-now" beside it: a run that ends')
    if job.overload and job.overload.budgets and job.limits and job.limits.probes is not None:
        expected = f"no second budget beside overload.{job.overload.budgets[0]}"
        raise mistake(top.where("limits.probes"), f"{job.limits.probes:g}", expected)
    _check_writable(top.where("checkpoint"), job.checkpoint)
    return job


def _max_ahead(top: Table) -> int | Literal["default", "off"]:
    text = top.text("max_ahead", 'a duration such as "1 DAY", or "off"')
    if text is None:
        return "default"
    return "off" if text.strip().lower() == "off" else top.milliseconds("max_ahead", text)


def _max_results(top: Table) -> int | None:
    value = top.take("max_results")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise top.wrong("max_results", value, "a whole number of results, 1 or more")
    return value


def _query(top: Table, folder: Path) -> str:
    text, file = top.take("query"), top.text("query_file", "a file with the query")
    if (text is None) == (file is None):
        if text is None:
            raise top.missing("query", "the text of the query, or query_file")
        raise top.wrong("query_file", file, "either query or query_file, not both")
    if file is not None:
        try:
            text = (folder / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise top.wrong("query_file", file, "a file that can be read", str(error)) from None
    if not isinstance(text, str) or not text.strip():
        raise top.wrong("query", text, "the text of the query")
    return text.strip("\n")


def _source(table: Table, name: str, folder: Path) -> Source:
    kind = _format(table, READABLE)
    path = table.text("path", "a file or a folder")
    static = table.flag("static")
    source = Source(
        name=name,
        format=kind,
        path=None if path is None else _address(path, folder),
        options=_options(table, kind),
        schema=table.text("schema", 'columns with types, such as "id BIGINT, ts TIMESTAMP"'),
        decode=cast(Literal["json"] | None, table.choice("decode", ("json",))),
        select=table.texts("select", 'a list of SQL expressions, such as ["value AS id"]'),
        static=static,
        event_time=table.text("event_time", "the name of a column"),
        event_time_format=table.text(
            "event_time_format", '"iso", or a pattern such as "dd.MM.yyyy HH:mm:ss"'
        ),
        watermark=table.duration("watermark"),
        refresh=_refresh(table, static),
        rate=table.number("rate", "rows per second, more than 0"),
    )
    table.end()
    if static and source.watermark is not None:
        raise mistake(table.where("watermark"), "a watermark", "none: the source is static")
    if source.decode and source.schema is None:
        raise table.missing("schema", "the columns of the decoded values, as DDL text")
    if kind == "kafka" and source.schema is not None and not source.decode:
        raise table.missing(
            "decode", '"json", since the schema of a Kafka source is that of its values'
        )
    if kind in FILE_FORMATS and path is None and "path" not in source.options:
        raise table.missing("path", f"the folder with the {kind} files")
    if kind in FILE_FORMATS and source.path is not None:
        _check_there(table.where("path"), source.path)
    return source


def _refresh(table: Table, static: bool) -> Refresh | None:
    expected = 'an interval such as "10 MINUTES", or "asked"'
    value = table.text("refresh", expected)
    if value is None:
        return None
    if not static:
        raise table.wrong("refresh", value, "nothing: the source is a stream", "is it static?")
    if value.strip().lower() == "asked":
        return "asked"
    interval = table.milliseconds("refresh", value)
    if interval == 0:
        raise table.wrong("refresh", value, expected)
    return interval


def _sink(table: Table, folder: Path) -> Sink:
    kind = _format(table, WRITABLE)
    path = table.text("path", "a folder")
    mode = table.text("mode")
    if mode is not None and mode != "append":
        raise table.wrong("mode", mode, '"append": results of a join are never taken back')
    sink = Sink(
        format=kind,
        path=None if path is None else _address(path, folder),
        options=_options(table, kind),
        partition_by=table.texts("partition_by", "a list of columns of the answer"),
        encode=cast(Literal["json"] | None, table.choice("encode", ("json",))),
        key=table.text("key", "a column of the answer"),
    )
    table.end()
    if sink.key is not None and sink.encode is None:
        raise table.missing("encode", '"json", where there is a key')
    if kind in FILE_FORMATS and sink.path is None:
        raise table.missing("path", "the folder for the results")
    if kind in FILE_FORMATS and sink.path is not None:
        _check_writable(table.where("path"), sink.path)
    return sink


def _side_sink(top: Table, name: str, folder: Path) -> Sink | None:
    table = top.table(name)
    return None if table is None else _sink(table, folder)


def _format(table: Table, known: tuple[str, ...]) -> str:
    kind = table.required_text("format", "a format of Spark, such as parquet, json, csv or kafka")
    hint = None if kind in known else did_you_mean(kind, known)
    if hint is not None:
        raise table.wrong("format", kind, "a format of Spark", hint)
    return kind


def _options(table: Table, kind: str) -> dict[str, str]:
    options = table.settings("options")
    known = OPTIONS.get(kind, ())
    lower = {each.lower() for each in known}
    for name in options:
        hint = None if name.lower() in lower else did_you_mean(name, known, 0.85)
        if hint is not None:
            place = table.where(f"options.{name}")
            raise mistake(place, "an unknown option", f"one that Spark has for {kind}", hint)
    return options


def _trigger(top: Table) -> Trigger:
    expected = '"available-now" or an interval such as "5 SECONDS"'
    value = top.text("trigger", expected)
    if value is None:
        return 0
    word = value.lower().replace("_", "-").replace(" ", "-")
    if word in ("available-now", "availablenow"):
        return "available-now"
    if word.startswith("continuous"):
        reason = "Spark's continuous mode has no state, and a join needs it"
        raise top.wrong("trigger", value, expected, reason)
    if word == "once" or did_you_mean(word, ["available-now"]):
        raise top.wrong("trigger", value, expected, "did you mean available-now?")
    return top.milliseconds("trigger", value)


def _cells(top: Table) -> int | Literal["auto"]:
    value = top.take("cells")
    if value is None or value == "auto":
        return "auto"
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise top.wrong("cells", value, 'a whole number of 1 or more, or "auto"')
    return value


def _hot(value: Any, top: Table) -> dict[str, tuple[str | int | float | bool, ...]]:
    expected = 'columns with lists of values, such as { "A.x" = [17, 4] }'
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise top.wrong("hot", value, expected)
    found = {}
    for column, values in value.items():
        is_list = isinstance(values, list) and values
        if not is_list or not all(isinstance(v, str | int | float) for v in values):
            raise top.wrong(f"hot.{column}", values, expected, 'is the column in quotes: "A.x"?')
        found[column] = tuple(values)
    return found


def _spill_folder(top: Table, folder: Path) -> str | None:
    text = top.text("spill_folder", "a folder on a local disk")
    if text is None:
        return None
    path = local_path(_address(text, folder))
    if path is None or not path.is_dir():
        raise top.wrong("spill_folder", text, "a folder on a local disk that exists")
    return str(path)


def _limits(table: Table | None) -> Limits | None:
    if table is None:
        return None
    limits = Limits(
        cpu=table.number("cpu", "a share of a core, more than 0"),
        memory=table.size("memory"),
        probes=table.number("probes", "probes per second of event time, more than 0"),
        disk=table.size("disk", may_be_none=True),
    )
    table.end()
    return None if limits == Limits() else limits


def _alerts(table: Table | None) -> AlertRules | None:
    if table is None:
        return None
    command = table.text("command", 'a program, such as "/usr/local/bin/page-me --urgent"')
    webhook = table.text("webhook", "an address, such as https://hooks.example.com/penstock")
    if webhook is not None and not webhook.startswith(("https://", "http://")):
        raise table.wrong("webhook", webhook, "an address that begins with https:// or http://")
    if command is None and webhook is None:
        raise table.missing("webhook", "a webhook or a command: somebody has to be told")
    try:
        words = tuple(shlex.split(command or ""))
    except ValueError as error:
        raise table.wrong("command", command, "a program with arguments", str(error)) from None
    lag, no_batch = table.duration("lag"), table.duration("no_batch")
    rules = AlertRules(
        command=words,
        webhook=webhook,
        late=_share(table, "late_share"),
        rejected=_share(table, "rejected_share"),
        lag=None if lag is None else lag / 1000,
        no_batch=None if no_batch is None else no_batch / 1000,
    )
    table.end()
    return rules


def _share(table: Table, key: str) -> float | None:
    expected = "a share of the rows of a source, more than 0 and less than 1, such as 0.01"
    value = table.number(key, expected)
    if value is not None and value >= 1:
        raise table.wrong(key, value, expected)
    return value


def _address(path: str, folder: Path) -> str:
    """``path`` as it is if it is elsewhere, else absolute, with ``folder`` for the beginning."""
    local = local_path(path)
    return path if local is None else os.path.normpath(folder / local.expanduser())


def _check_there(where: str, address: str) -> None:
    path = local_path(address)
    if path is None or path.exists() or glob.glob(str(path)):
        return
    if path.parent.is_dir():
        near = did_you_mean(path.name, (each.name for each in path.parent.iterdir()), 0.6)
    else:
        near = f"{path.parent} is missing too"
    raise mistake(where, f"no folder {path}", "an existing folder, which may be empty", near)


def _check_writable(where: str, address: str) -> None:
    """Refuse a folder that cannot be made or written; folders elsewhere are Spark's business."""
    path = local_path(address)
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise mistake(where, f"the file {path}", "a folder")
    parent = path
    while not parent.exists():
        parent = parent.parent
    if not os.access(parent, os.W_OK | os.X_OK):
        raise mistake(where, f"{parent}, which cannot be written", "a folder that can be written")

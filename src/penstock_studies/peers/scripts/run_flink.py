"""Flink SQL from PyFlink: interval joins chained in the order given, or its multi-way join.

``written`` and ``better``: interval joins on event time, whose state is dropped as watermarks
advance: https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/sql/queries/joins/
Only the first stream keeps its time attribute: with windows between all pairs on time attributes
the second join silently becomes a regular one, whose state never expires, so the other pairs are
compared as plain numbers.

``multi-join``: ``table.optimizer.multi-join.enabled``, one operator without intermediate state for
streams that share a key, else a chain of such operators; windows only filter, and its state never
expires: https://nightlies.apache.org/flink/flink-docs-stable/docs/dev/table/tuning/

State on the heap (the fastest backend), objects reused, the final sums in mini-batches. The wheel
has no Parquet, and its CSV cannot skip a header.
"""

from hand_over import columns, conditions, serve
from pyflink.table import EnvironmentSettings, TableEnvironment


def join(order):
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    multi = order["variant"] == "multi-join"
    for name, value in {
        "parallelism.default": str(order["cores"]),
        "pipeline.object-reuse": "true",
        "state.backend.type": "hashmap",
        "table.local-time-zone": "UTC",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "2 s",
        "table.exec.mini-batch.size": "50000",
        "table.optimizer.multi-join.enabled": str(multi).lower(),
    }.items():
        table.get_config().set(name, value)
    for stream, source in order["streams"].items():
        declared = ", ".join(f"{column} BIGINT" for column in columns(order, stream))
        table.execute_sql(
            f"CREATE TABLE {stream} ({declared}, rt AS TO_TIMESTAMP_LTZ(ts, 3), "
            "WATERMARK FOR rt AS rt) WITH ('connector' = 'filesystem', "
            f"'path' = 'file://{source['file']}', 'format' = 'csv')"
        )
    sums = ", ".join(f"SUM({stream}_id)" for stream in order["streams"])
    joined = regular_joins(order) if multi else interval_joins(order)
    last = None
    with table.execute_sql(f"SELECT COUNT(*), {sums} FROM ({joined})").collect() as rows:
        for row in rows:  # A changelog; the last row is the answer.
            last = row
    results, *sums = last if last is not None else [0] * (1 + len(order["streams"]))
    return {"results": results, "sums": dict(zip(order["streams"], sums, strict=True))}


def interval_joins(order):
    first, *others = order["sequence"]
    span = interval(order["window"])
    named = [f"{column} AS {first}_{column}" for column in columns(order, first)]
    text, together = f"SELECT rt, {', '.join(named)} FROM {first}", [first]
    for stream in others:
        agree = [f"L.{o}_{c} = R.{c}" for o, c in conditions(order, stream, together)]
        agree.append(f"R.rt BETWEEN L.rt - {span} AND L.rt + {span}")
        agree += [within(f"L.{o}_ts", "R.ts", order) for o in together[1:]]
        kept = ["L.rt", *(f"L.{o}_{c}" for o in together for c in columns(order, o))]
        kept += [f"R.{column} AS {stream}_{column}" for column in columns(order, stream)]
        text = (
            f"SELECT {', '.join(kept)} FROM ({text}) AS L JOIN {stream} AS R "
            f"ON {' AND '.join(agree)}"
        )
        together.append(stream)
    return text


def regular_joins(order):
    first, *others = order["sequence"]
    text, together = first, [first]
    for stream in others:
        agree = [f"{o}.{c} = {stream}.{c}" for o, c in conditions(order, stream, together)]
        agree += [within(f"{o}.ts", f"{stream}.ts", order) for o in together]
        text += f" JOIN {stream} ON {' AND '.join(agree)}"
        together.append(stream)
    selected = ", ".join(f"{stream}.id AS {stream}_id" for stream in order["streams"])
    return f"SELECT {selected} FROM {text}"


def interval(milliseconds):
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"0 {hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
    return f"INTERVAL '{text}' DAY TO SECOND(3)"


def within(one, other, order):
    return f"{other} BETWEEN {one} - {order['window']} AND {one} + {order['window']}"


serve(join)

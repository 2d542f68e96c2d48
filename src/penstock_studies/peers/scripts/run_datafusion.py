"""DataFusion: symmetric hash joins over unbounded tables.

``CREATE UNBOUNDED EXTERNAL TABLE … WITH ORDER`` makes a stream that is read once and is known to be
sorted, and a join with a range on sorted columns becomes a SymmetricHashJoinExec that can prune:
https://datafusion.apache.org/user-guide/sql/ddl.html and
https://docs.rs/datafusion-physical-plan/latest/datafusion_physical_plan/joins/struct.SymmetricHashJoinExec.html

All pairs of windows are written as ranges: hiding some of them from the pruning is no faster. The
joins run in the order written, whatever it costs; it has no watermark and no checkpoint. With the
same windows and twice the input, the state of the second join is twice as large.
"""

from datafusion import SessionConfig, SessionContext
from hand_over import add_up, columns, conditions, serve


def join(order):
    context = SessionContext(SessionConfig().with_target_partitions(order["cores"]))
    for stream, source in order["streams"].items():
        declared = ", ".join(f"{column} BIGINT NOT NULL" for column in columns(order, stream))
        context.sql(
            f"CREATE UNBOUNDED EXTERNAL TABLE {stream} ({declared}) STORED AS CSV "
            f"WITH ORDER (ts ASC) LOCATION '{source['file']}' "
            "OPTIONS ('format.has_header' 'true')"
        ).collect()
    plan = context.sql(sql(order)).execution_plan()
    if "SymmetricHashJoinExec" not in plan.display_indent():
        raise RuntimeError("DataFusion did not plan a streaming join")
    batches = (
        batch.to_pyarrow()
        for partition in range(plan.partition_count)
        for batch in context.execute(plan, partition)
    )
    told = add_up(order, batches)
    return {**told, "state_bytes": state(plan)}


def sql(order):
    first, *others = order["sequence"]
    text, together, window = first, [first], order["window"]
    for stream in others:
        agree = [f"{o}.{c} = {stream}.{c}" for o, c in conditions(order, stream, together)]
        agree += [
            f"{stream}.ts >= {o}.ts - {window} AND {stream}.ts <= {o}.ts + {window}"
            for o in together
        ]
        text += f" JOIN {stream} ON {' AND '.join(agree)}"
        together.append(stream)
    selected = ", ".join(f"{stream}.id AS {stream}_id" for stream in order["streams"])
    return f"SELECT {selected} FROM {text}"


def state(plan):
    """Bytes in the hash tables of all joins, as the joins tell."""
    return sum(
        metric.value or 0
        for _, metrics in plan.collect_metrics()
        for metric in metrics.metrics()
        if metric.name == "stream_memory_usage"
    )


serve(join)

"""Penstock, embedded: the engine in this process, fed with blocks of the files.

``written`` is the query as it stands and the engine's defaults; ``better`` is given a plan.
"""

import itertools
import os

import pyarrow as pa
import pyarrow.csv
from hand_over import add_up, columns, serve

import penstock

BLOCK = 1 << 18
"""Bytes of a file per push: about 10,000 rows; an eighth of a file that is shorter than that."""
LOOK = 10
"""Pushes between two looks at the size of the state."""


def join(order):
    pa.set_cpu_count(order["cores"])
    plan = order["plan"] if order["variant"] == "better" else "auto"
    schemas, engine = start(order, plan)
    most = 0

    def results():
        nonlocal most
        for number, push in enumerate(pushes(order, schemas)):
            yield engine.push(push)
            if number % LOOK == 0:
                most = max(most, engine.metrics()["state"]["bytes"])

    told = add_up(order, results())
    return {**told, "state_bytes": max(most, engine.metrics()["state"]["bytes"])}


def start(order, plan):
    schemas = {
        stream: pa.schema([(column, pa.int64()) for column in columns(order, stream)])
        for stream in order["streams"]
    }
    return schemas, penstock.Engine(penstock.parse(order["query"], schemas=schemas), plan=plan)


def rehearse(order):
    """As little input gives no reason to change the plan, what that needs is loaded by itself."""
    join(order)
    schemas, engine = start(order, "auto")
    plans = itertools.cycle([order["plan"], f"({' '.join(order['streams'])})"])
    for number, push in enumerate(pushes(order, schemas)):
        engine.push(push)
        if number % 2 == 1:
            engine.migrate(next(plans))
    engine.explain(analyze=True)


def pushes(order, schemas):
    """A block of every file, until all have ended."""
    readers = {
        stream: pyarrow.csv.open_csv(
            source["file"],
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=min(BLOCK, os.path.getsize(source["file"]) // 8)
            ),
            convert_options=pyarrow.csv.ConvertOptions(column_types=schemas[stream]),
        )
        for stream, source in order["streams"].items()
    }
    while True:
        blocks = {stream: next(reader, None) for stream, reader in readers.items()}
        push = {stream: block for stream, block in blocks.items() if block is not None}
        if not push:
            return
        yield push


serve(join, rehearse)

"""Pushes on request, with whatever penstock is on the path: a process that ``--against`` starts.

``python -P push_child.py FOLDER FEEDBACK`` reads the query from ``setup.json`` and the streams
from Arrow files in FOLDER, fills the windows, and says which penstock it is. For each line ``ROWS
COUNT`` it then makes so many pushes of so many rows and gives their CPU seconds. Of penstock
it uses what the oldest code that it is to run has had: ``parse``, ``Engine`` and ``push``.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import penstock


def pushes(
    tables: dict[str, pa.RecordBatch], batch: int, start: int, end: int
) -> Iterator[dict[str, pa.RecordBatch]]:
    """The tuples from ``start`` to ``end`` of all streams, in time order, round robin."""
    width = len(tables)
    for first in range(start, end, batch):
        last = min(first + batch, end)
        push = {}
        for number, (name, table) in enumerate(tables.items()):
            begin, stop = -(-(first - number) // width), -(-(last - number) // width)
            if stop > begin:
                push[name] = table.slice(begin, stop - begin)
        yield push


def main(folder: Path, feedback: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What penstock prints is no answer.
    pa.set_cpu_count(1)
    setup = json.loads((folder / "setup.json").read_text())
    tables = {}
    for name in setup["streams"]:
        with pa.ipc.open_file(folder / f"{name}.arrow") as file:
            tables[name] = file.get_batch(0)
    query = penstock.parse(setup["query"], {name: each.schema for name, each in tables.items()})
    engine = penstock.Engine(query, plan=setup["plan"], feedback=feedback)
    at = setup["filled"]
    for push in pushes(tables, setup["batch"], 0, at):
        engine.push(push)
    gc.collect()
    gc.freeze()
    print(json.dumps(str(Path(penstock.__file__).parent)), file=answers, flush=True)
    for line in sys.stdin:
        batch, count = map(int, line.split())
        block = list(pushes(tables, batch, at, at + batch * count))
        at += batch * count
        if at > sum(each.num_rows for each in tables.values()):
            raise SystemExit("the input is too short for so many rounds")
        begin = time.process_time()
        for push in block:
            engine.push(push)
        print(json.dumps(time.process_time() - begin), file=answers, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

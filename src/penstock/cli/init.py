"""``penstock init``: a commented job file to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

JOB = '''\
# A job of Penstock: penstock explain {file}, then penstock run {file} --ui
# Paths are relative to this file. All keys: docs/reference/job-files.md

query = """
SELECT orders.id, orders.item, payments.city AS paid_in
FROM orders   [RANGE 1 HOUR],
     payments [RANGE 30 MINUTES]
WHERE orders.id = payments.order
"""

# Spark's state and progress; the event log is beside it. A changed query needs another folder.
checkpoint = "out/checkpoint"

# "available-now" takes what is there and ends; an interval such as "5 SECONDS" goes on.
trigger = "available-now"

# How many engines share the work at most: "auto" is one for each shuffle partition of Spark.
# cells = 4

# A plan such as "(orders payments)"; "auto" leaves it to the engine.
# plan = "auto"

# One table for each stream of the query: any format that Spark reads.
[sources.orders]
format = "json"
path = "orders"                     # A folder: every new file in it is read once.
schema = "id BIGINT, item STRING, ts TIMESTAMP"
watermark = "30 SECONDS"            # How far out of order rows may be; later ones are dropped.
# event_time = "ts"

[sources.payments]
format = "csv"
path = "payments"
schema = "order BIGINT, city STRING, ts TIMESTAMP"
options.header = true               # Spark's options of the format.
watermark = "30 SECONDS"

# A relation that does not change has static = true, and no window in the query.
# [sources.cities]
# format = "parquet"
# path = "cities"
# static = true

# Any format that Spark can write streams to.
[sink]
format = "parquet"
path = "out/results"

# Spark's settings, without spark. in front.
# [spark]
# driver.memory = "2g"
'''


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "init",
        help="write a commented job file to begin with",
        description="Write a job file with comments, and the folders of its sources. Nothing that "
        "exists is overwritten.",
        epilog="example: penstock init shop/job.toml",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default="job.toml", help="default: %(default)s"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from penstock.errors import OptionError

    file = Path(options.file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as new:
            new.write(JOB.format(file=file.name))
        for name in ("orders", "payments"):
            (file.parent / name).mkdir(exist_ok=True)
    except FileExistsError:
        raise OptionError(f"{file} exists; name another file: penstock init FILE") from None
    except OSError as error:
        raise OptionError(f"cannot write {file}: {error.strerror or error}") from None
    print(f"{file}: change the query and its sources, put data into the folders, then")
    print(f"  penstock explain {file}\n  penstock run {file} --ui")
    return 0

"""Polars, offline: the whole input in one lazy query. The limit to measure against, not a peer.

Joins run in the order given. The streaming engine takes less memory than the in-memory one:
https://docs.pola.rs/user-guide/concepts/streaming/
"""

import os
from functools import partial

from hand_over import columns, conditions, serve


def join(order):
    os.environ["POLARS_MAX_THREADS"] = str(order["cores"])  # Read when Polars is imported.
    import polars as pl

    def scan(stream):
        types = dict.fromkeys(columns(order, stream), pl.Int64)
        frame = pl.scan_csv(order["streams"][stream]["file"], schema=types)
        return frame.rename(partial(named, stream))

    def named(stream, column):
        return f"{stream}_{column}"

    first, *others = order["sequence"]
    joined, together = scan(first), [first]
    for stream in others:
        agree = conditions(order, stream, together)
        joined = joined.join(
            scan(stream),
            left_on=[f"{o}_{c}" for o, c in agree],
            right_on=[f"{stream}_{c}" for _, c in agree],
            coalesce=False,
        ).filter(
            (pl.col(f"{o}_ts") - pl.col(f"{stream}_ts")).abs() <= order["window"] for o in together
        )
        together.append(stream)
    found = joined.select(
        pl.len(), *(pl.col(f"{stream}_id").sum() for stream in order["streams"])
    ).collect(engine="streaming")
    results, *sums = found.row(0)
    return {"results": results, "sums": dict(zip(order["streams"], sums, strict=True))}


serve(join)

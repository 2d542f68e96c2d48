"""Pathway: interval joins chained in the order given.

https://pathway.com/developers/api-docs/temporal describes ``interval_join``. The further pairs of
windows are a filter. No ``behavior``: a cutoff bounds the state, but made it slower on an input
that ends. Each file is one mini-batch, which is the cheapest way to feed it. The sums are made
inside, so that no row goes through Python. A column cannot be called ``id``.
"""

import os

from hand_over import columns, conditions, serve


def join(order):
    os.environ["PATHWAY_THREADS"] = str(order["cores"])
    import pathway as pw

    pw.internals.parse_graph.G.clear()
    window = order["window"]

    def read(stream):
        names = ["tuple_id" if name == "id" else name for name in columns(order, stream)]
        schema = pw.schema_from_types(**dict.fromkeys(names, int))
        table = pw.io.csv.read(order["streams"][stream]["file"], schema=schema, mode="static")
        return table.select(**{f"{stream}_{name}": pw.this[name] for name in names})

    first, *others = order["sequence"]
    joined, together = read(first), [first]
    for stream in others:
        other = read(stream)
        pairs = conditions(order, stream, together)
        joined = joined.interval_join(
            other,
            joined[f"{first}_ts"],
            other[f"{stream}_ts"],
            pw.temporal.interval(-window, window),
            *(joined[f"{o}_{c}"] == other[f"{stream}_{c}"] for o, c in pairs),
        ).select(
            *(pw.left[name] for name in joined.column_names()),
            *(pw.right[name] for name in other.column_names()),
        )
        for o in together[1:]:
            apart = joined[f"{o}_ts"] - joined[f"{stream}_ts"]
            joined = joined.filter((apart <= window) & (apart >= -window))
        together.append(stream)
    sums = {stream: pw.reducers.sum(joined[f"{stream}_tuple_id"]) for stream in order["streams"]}
    told = {"results": 0, "sums": dict.fromkeys(order["streams"], 0)}

    def keep(key, row, time, is_addition):
        if is_addition:
            told["results"] = row.pop("results")
            told["sums"] = row

    pw.io.subscribe(joined.reduce(results=pw.reducers.count(), **sums), keep)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return told


serve(join)

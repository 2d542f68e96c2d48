"""DuckDB, offline: the whole input in one query. The limit to measure against, not a peer.

The files are loaded into tables first, as https://duckdb.org/docs/stable/guides/performance/file_formats
advises for more than one join: without statistics its optimizer does not find the better order.
``penstock bench engine`` compares the ways to write the windows.
"""

import itertools

import duckdb
from hand_over import add_up, columns, serve


def join(order):
    connection = duckdb.connect()
    connection.execute(f"SET threads = {order['cores']}")
    for stream, source in order["streams"].items():
        types = ", ".join(f"'{column}': 'BIGINT'" for column in columns(order, stream))
        connection.execute(
            f"CREATE TABLE {stream} AS FROM "
            f"read_csv('{source['file']}', header = true, columns = {{{types}}})"
        )
    agree = [f"{a}.{c} = {b}.{c}" for a, b, c in order["pairs"]]
    agree += [
        f"abs({a}.ts - {b}.ts) <= {order['window']}"
        for a, b in itertools.combinations(order["streams"], 2)
    ]
    selected = ", ".join(f"{stream}.id AS {stream}_id" for stream in order["streams"])
    sql = f"SELECT {selected} FROM {', '.join(order['streams'])} WHERE {' AND '.join(agree)}"
    return add_up(order, [connection.sql(sql).to_arrow_table()])


serve(join)

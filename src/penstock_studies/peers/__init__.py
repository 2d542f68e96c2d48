"""``penstock bench peers``: the same joins on other engines, measured in one run.

Everybody gets the same streams, one thread (``--cores``), and the configuration that its own
documentation recommends for this kind of query; each script in ``scripts`` says which, with the
page. Engines that join in the order written are measured in that order and in the better one.
DuckDB and Polars compute the join offline, in one go: they are the limit, not competitors.

A run is a process tree of its own with bounds on time and memory. It first joins a small input, so
that loading, compiling and starting a JVM are told apart (*start*) from the join itself (*CPU
seconds*, of the whole tree). Results are counted and their ids summed, and compared with DuckDB's.
What fails is in the table, with its reason.
"""

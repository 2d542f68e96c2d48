"""Sources that Penstock reads itself, and the ledger of what was taken of them.

A source hands out *portions*: plain values that say which files or offsets a micro-batch takes.
The ledger keeps the portions of every batch. Together they are the state of a query: whoever has
both can read any window again. No Spark here: :mod:`penstock.spark.data_source` puts this into it.
"""

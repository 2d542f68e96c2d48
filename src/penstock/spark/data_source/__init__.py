"""Penstock as a data source of Spark: ``spark.readStream.format("penstock")``.

Spark plans batches, runs tasks, commits and feeds any sink. A task reads its files itself, joins
them in an engine that lives in the worker, and hands over results. No rows go through the JVM on
their way in, nothing is shuffled, and there is no state store: the source is the state
(:mod:`penstock.spark.data_source.sourced_cell`).
"""

"""A job file on Spark: sources, sinks, lane, events."""

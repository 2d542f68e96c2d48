"""A cell of a join on Spark: its engine, key, report and budget."""

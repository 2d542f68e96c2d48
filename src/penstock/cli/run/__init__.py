"""``penstock run``: a job file, run on Spark with a view of what happens."""

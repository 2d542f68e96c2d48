"""Jobs: a query with its sources, sink and settings, as a value and as a file.

>>> from penstock.job import read_job
>>> job = read_job("job.toml")              # doctest: +SKIP

Nothing here needs Spark: a mistake in a job file is found before anything is started.
"""

from penstock.job.job import Job, Sink, Source
from penstock.job.read import read_job

__all__ = ["Job", "Sink", "Source", "read_job"]

"""The SparkSession of a job, and the packages that its formats need.

Spark's connector for Kafka does not come with PySpark. A job that reads or writes Kafka gets it by
its Maven name, unless the job (``spark.jars.packages``, ``spark.jars``) or the environment
(``PYSPARK_SUBMIT_ARGS``) names one, or it lies in Spark's folder of jars. The version is the newest
that is published and was tested with this Spark, which may be older than Spark itself. What is set
for speed is what the job's lane has a use for (:mod:`penstock.spark.start.tuning`).
"""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from penstock.errors import PenstockError
from penstock.job.job import Job
from penstock.spark.jobs.job_lane import SOURCE, choose_lane
from penstock.spark.jobs.spark_mistake import blamed_on
from penstock.spark.private_spark import jars_folder
from penstock.spark.session import PROVIDER, session_with
from penstock.spark.start.tuning import tricks_of

PACKAGES = "spark.jars.packages"
CONNECTOR = "spark-sql-kafka-0-10"
ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_SCALA = "2.13"
_VERSION = "4.2.0"


def job_session(job: Job, log_level: str = "ERROR") -> SparkSession:
    """A session for ``job``, with its settings of Spark."""
    settings = dict(job.spark)
    packages = [settings.pop(PACKAGES, ""), *needed_packages(job)]
    joined = ",".join(each for each in packages if each)
    if joined:
        settings[PACKAGES] = joined
    master = settings.pop("spark.master", None)
    settings.setdefault("spark.app.name", job.name)
    tricks = tricks_of(choose_lane(job).name)
    spark = session_with(tricks, master, settings.pop("spark.app.name"), log_level, **settings)
    try:
        with blamed_on(f"{job.file or job.name}: spark"):
            spark.conf.get(PROVIDER)  # Settings of SQL are looked at when the first is needed.
    except PenstockError:
        spark.stop()
        raise
    return spark


def needed_packages(job: Job) -> list[str]:
    """Maven names of what Spark lacks for the formats of ``job``."""
    formats = {job.sink.format}
    if choose_lane(job).name != SOURCE:
        formats |= {source.format for source in job.sources.values()}
    places = [job.spark.get(PACKAGES, ""), job.spark.get("spark.jars", "")]
    return kafka_packages(*places) if "kafka" in formats else []


def kafka_packages(*places: str) -> list[str]:
    """The Maven name of Spark's connector for Kafka; none if Spark has it, or if ``places`` or the
    environment name one."""
    named = any(CONNECTOR in each for each in (*places, os.environ.get(ARGUMENTS, "")))
    if named or _is_installed(CONNECTOR):
        return []
    return [f"org.apache.spark:{CONNECTOR}_{_SCALA}:{_VERSION}"]


def _is_installed(artifact: str) -> bool:
    jars = jars_folder()
    return any(jars.glob(f"{artifact}*.jar"))

"""One Spark for all tests of a run: a JVM takes longer to start than most tests to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import penstock.spark
from penstock.job.redaction import forget_secrets


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session that compiles little: nothing here runs long enough to repay it."""
    options = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.memory": "1g",
    }
    session = penstock.spark.session("local[2,4]", **options)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """What one test notes as secret is not so in the next."""
    yield
    forget_secrets()

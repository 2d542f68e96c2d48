"""One Spark for all tests of a run: a JVM takes longer to start than most tests to run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock.cli.run.run_job as run_module
import penstock.spark
from penstock.cli.run.spark_start import SparkLog
from penstock.job.redaction import forget_secrets


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session that compiles little: nothing here runs long enough to repay it."""
    options = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = penstock.spark.session("local[2,4]", **options)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    """What one test notes as secret is not so in the next."""
    yield
    forget_secrets()


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Commands take the session of the tests."""

    @contextmanager
    def started(*_: object) -> Iterator[tuple[Any, SparkLog]]:
        log = SparkLog()
        yield spark, log
        log.close()
        log.path.unlink(missing_ok=True)

    monkeypatch.setattr(run_module, "started_spark", started)
    monkeypatch.setattr(run_module, "kernels_beside", lambda _: nullcontext(lambda _: None))
    return spark

"""Run the Kafka example in a process of its own: messages in, the job twice, messages out.

Spark must have the connector when it starts, so it is not the Spark of the other tests.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from penstock.job import read_job
from penstock.spark.jobs.job_run import JobRun
from penstock.spark.jobs.job_session import job_session
from penstock.spark.jobs.prepared_job import prepare


def main(file: str, messages: list[dict[str, list[dict[str, Any] | str]]]) -> None:
    job = read_job(file)
    spark = job_session(job)
    servers = {k: v for k, v in job.sink.options.items() if k.startswith("kafka.")}
    for batch in messages:
        for topic, rows in batch.items():
            texts = [(row if isinstance(row, str) else json.dumps(row),) for row in rows]
            values = spark.createDataFrame(texts, "value STRING")
            values.write.format("kafka").options(**servers, topic=topic).save()
        prepared = prepare(job, spark)
        with JobRun(prepared) as run:
            run.start()
            while not run.ended:
                run.poll(0.2)
        if run.failure:
            sys.exit(run.failure.details)
    told: list[Any] = [list(prepared.warnings)]
    for sink in (job.sink, job.rejected):
        assert sink is not None
        found = spark.read.format("kafka").options(**servers, subscribe=sink.options["topic"])
        out = found.load().selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
        told.append([[row[0], json.loads(row[1])] for row in out])
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))

"""The plan, limits and adapt of the command line go before those of the job file."""

from __future__ import annotations

import argparse

import pytest

import penstock
from penstock.cli.plan_options import add_adapt_option, add_plan_options, with_plan_options
from penstock.job.job import Job, Limits, Sink

JOB = Job("job", "SELECT …", {}, Sink("parquet"), "folder", plan="(A B)", limits=Limits(0.5, 100))


def changed(*arguments: str) -> Job:
    parser = argparse.ArgumentParser()
    add_plan_options(parser)
    add_adapt_option(parser)
    return with_plan_options(JOB, parser.parse_args(arguments))


def test_nothing_given_changes_nothing() -> None:
    assert changed() == JOB


def test_what_is_given_goes_first() -> None:
    job = changed("--plan", "auto", "--memory", "2GiB", "--adapt", "off")
    assert (job.plan, job.adapt, job.limits) == ("auto", "off", Limits(0.5, 2 << 30))
    assert changed("--cpu", "0.25").limits == Limits(0.25, 100)


def test_mistakes() -> None:
    with pytest.raises(penstock.OptionError, match="is no size"):
        changed("--memory", "much")
    with pytest.raises(penstock.OptionError, match="more than 0"):
        changed("--cpu", "0")

"""Tokens: whole probes per batch add up to the allowance, however the stream is cut."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_model import random_model

from penstock.errors import InvariantBroken, OptionError
from penstock.overload import Allocation, Allowance, HalfWayJoin, allocate
from penstock.overload.probe_tokens import ProbeTokens
from penstock.plan import StreamSet

A, B = StreamSet.of("A"), StreamSet.of("B")
STEP = HalfWayJoin(A, B, A)


def allocation_of(rate: float) -> Allocation:
    model = random_model(random.Random(1))
    return replace(allocate(model, 1), allowances=(Allowance(STEP, rate),))


@settings(deadline=None)
@given(
    rate=st.integers(0, 4000).map(lambda n: n / 64),
    batches=st.lists(
        st.tuples(st.integers(0, 256).map(lambda n: n / 64), st.integers(0, 200)), max_size=40
    ),
    burst=st.sampled_from([0.0, 0.5, 1.0, 10.0]),
)
def test_against_a_bucket_of_fractions(
    rate: float, batches: list[tuple[float, int]], burst: float
) -> None:
    """Binary fractions throughout, so that floats are exact and the bucket must agree."""
    allocation = allocation_of(rate)
    tokens = ProbeTokens()
    bucket = Fraction(0)
    for seconds, coming in batches:
        tokens = tokens.refill(allocation, seconds, burst)
        bucket = min(bucket, max(Fraction(1), Fraction(rate) * Fraction(burst)))
        bucket += Fraction(rate) * Fraction(seconds)
        assert tokens.allowed[STEP] == bucket.numerator // bucket.denominator
        made = min(coming, tokens.allowed[STEP])
        tokens = tokens.spend({STEP: made})
        bucket -= made


@settings(deadline=None)
@given(
    rate=st.floats(0.01, 1000),
    cuts=st.lists(st.floats(0.001, 3), min_size=1, max_size=60),
    burst=st.sampled_from([0.0, 1.0]),
)
def test_with_enough_tuples_the_rate_is_met(rate: float, cuts: list[float], burst: float) -> None:
    allocation = allocation_of(rate)
    tokens = ProbeTokens()
    made = 0
    for seconds in cuts:
        tokens = tokens.refill(allocation, seconds, burst)
        made += tokens.allowed[STEP]
        tokens = tokens.spend(tokens.allowed)
    assert rate * sum(cuts) - 1.001 <= made <= rate * sum(cuts) + 1.001


def test_idle_time_saves_up_no_more_than_the_burst() -> None:
    tokens = ProbeTokens().refill(allocation_of(100.0), 3600.0)
    tokens = tokens.refill(allocation_of(100.0), 0.5, burst=2.0)
    assert tokens.allowed == {STEP: 250}


def test_another_allocation_keeps_the_tokens_of_what_remains() -> None:
    tokens = ProbeTokens().refill(allocation_of(0.5), 1.0)
    assert tokens.allowed == {STEP: 0}
    assert tokens.refill(allocation_of(0.25), 2.0).allowed == {STEP: 1}
    other = HalfWayJoin(B, A, B)
    changed = replace(allocation_of(1.0), allowances=(Allowance(other, 3.0),))
    assert tokens.refill(changed, 1.0).allowed == {other: 3}


def test_probes_that_were_not_allowed_are_a_bug() -> None:
    tokens = ProbeTokens().refill(allocation_of(10.0), 1.0)
    with pytest.raises(InvariantBroken, match="A ⋉ B made 11 probes, 10 were allowed"):
        tokens.spend({STEP: 11})
    with pytest.raises(OptionError, match="time that a batch covers is -1"):
        tokens.refill(allocation_of(1.0), -1)

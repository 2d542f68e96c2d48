"""Limits against bytes held, small: what is over is counted, and must be told."""

from __future__ import annotations

import argparse

import pytest

import penstock
from penstock_studies import limits_study
from penstock_studies.limits_study import SHAPES, Held, Shape, held

CHAIN = Shape(3, ((0, 1), (1, 2)), 100)


def run(limits: penstock.Limits | None, bursts: bool) -> Held:
    return held(CHAIN, limits, 1, bursts)


@pytest.mark.parametrize("bursts", [False, True])
def test_a_limit_below_what_is_needed(bursts: bool) -> None:
    alone = run(None, bursts)
    assert alone.results > 0
    assert alone.over == alone.disk == 0
    assert alone.private >= 0
    limits = penstock.Limits(memory=int(alone.most / 3), disk=0)
    tight = run(limits, bursts)
    assert tight.results == alone.results
    assert tight.over > 0
    assert tight.untold == 0


def test_the_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(limits_study, "_PUSHES", 60)
    monkeypatch.setattr(limits_study, "SHAPES", {"chain of 6": CHAIN})
    options = argparse.Namespace(shape=["chain of 6"], seed=1)
    assert limits_study.run(options) is True
    assert capsys.readouterr().out.count("same") == 12
    right = Held(most=1e6, results=5, plan="(S0 S1)")
    wrong = Held(most=1e6, results=5, plan="(S0 S1)", over=3, untold=1)
    monkeypatch.setattr(limits_study, "held", lambda shape, limits, *_: wrong if limits else right)
    assert limits_study.run(options) is False


def test_every_stream_is_linked() -> None:
    for shape in SHAPES.values():
        assert {each for link in shape.links for each in link} == set(range(shape.streams))

"""Hypothesis strategies: the generators, driven by Hypothesis so that failures shrink.

The same code makes the cases, with Hypothesis standing in for the generator of random numbers.
The size of a case is drawn beforehand, so that shrinking starts with fewer streams and tuples.
"""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.testing.case import Case
from penstock.testing.generators import generate
from penstock.testing.knobs import Knobs
from penstock.testing.random_plan import random_plan


@st.composite
def cases(draw: st.DrawFn, knobs: Knobs | None = None) -> Case:
    """Cases within ``knobs``."""
    knobs = knobs or Knobs()
    streams = draw(st.integers(*knobs.streams))
    tuples = draw(st.integers(1, knobs.tuples_for(streams)))
    sized = Knobs(knobs.features, (streams, streams), tuples, knobs.domain)
    return generate(draw(st.randoms(use_true_random=False)), sized)


@st.composite
def plans(draw: st.DrawFn, aliases: tuple[str, ...]) -> str:
    """Plans over ``aliases``, in the notation."""
    return random_plan(draw(st.randoms(use_true_random=False)), aliases)

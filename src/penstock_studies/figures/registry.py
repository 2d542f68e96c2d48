"""All experiments, in the order of the report, and how they are found by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from penstock.errors import OptionError
from penstock_studies.figures import cluster, jaqpot, jisc, jisc_beyond, jit, jtree, scale, together
from penstock_studies.lab.experiment import Experiment

EXPERIMENTS: Sequence[Experiment] = (
    *jit.EXPERIMENTS,
    *jtree.EXPERIMENTS,
    *jisc.EXPERIMENTS,
    *jisc_beyond.EXPERIMENTS,
    *jaqpot.EXPERIMENTS,
    *together.EXPERIMENTS,
    *scale.EXPERIMENTS,
    *cluster.EXPERIMENTS,
)


def find(names: str, known: Sequence[Experiment] = EXPERIMENTS) -> list[Experiment]:
    """``all``, or names, what names begin with, and patterns: ``jit-10,scale,jtree-1*``."""
    if names == "all":
        return list(known)
    wanted = [each.strip() for each in names.split(",")]
    for name in wanted:
        if not any(_is_meant(each.name, name) for each in known):
            raise OptionError(_unknown(name, [each.name for each in known]))
    return [each for each in known if any(_is_meant(each.name, name) for name in wanted)]


def _is_meant(name: str, wanted: str) -> bool:
    return fnmatchcase(name, wanted) or name.startswith(f"{wanted}-")


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"\nhint: did you mean {close[0]}?" if close else ""
    return f"no experiment is called {name!r}; there are: {', '.join(known)}{hint}"

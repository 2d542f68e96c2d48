"""All experiments, in the order of the report, and how they are found by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from penstock.errors import OptionError
from penstock.experiments.figures import jaqpot, jisc, jit, jtree, together
from penstock.experiments.lab.experiment import Experiment

EXPERIMENTS: Sequence[Experiment] = (
    *jit.EXPERIMENTS,
    *jtree.EXPERIMENTS,
    *jisc.EXPERIMENTS,
    *jaqpot.EXPERIMENTS,
    *together.EXPERIMENTS,
)


def find(names: str, known: Sequence[Experiment] = EXPERIMENTS) -> list[Experiment]:
    """``all``, or names and patterns between commas: ``jit-10,jtree-*``."""
    if names == "all":
        return list(known)
    wanted = [each.strip() for each in names.split(",")]
    for name in wanted:
        if not any(fnmatchcase(each.name, name) for each in known):
            raise OptionError(_unknown(name, [each.name for each in known]))
    return [each for each in known if any(fnmatchcase(each.name, name) for name in wanted)]


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    hint = f"\nhint: did you mean {close[0]}?" if close else ""
    return f"no experiment is called {name!r}; there are: {', '.join(known)}{hint}"

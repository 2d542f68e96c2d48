"""Experiments and benchmarks of other engines: in the repository, not in what users install."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from penstock.errors import PenstockError

MISSING = (
    "experiments and benchmarks of other engines are not in the installed package; they are in the "
    "repository: clone it, then pip install --editable '.[dev]'"
)


def from_studies(module: str) -> Any:
    """A module of the package ``penstock_studies``."""
    if find_spec("penstock_studies") is None:
        raise PenstockError(MISSING)
    return import_module(f"penstock_studies.{module}")

"""Warnings of Penstock as texts, for a job that tells them in its own way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockWarning


@contextmanager
def collected_warnings(texts: list[str]) -> Iterator[None]:
    """Add the warnings of Penstock in the block to ``texts``; others are given on."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", PenstockWarning)
        yield
    for each in found:
        if issubclass(each.category, PenstockWarning):
            texts.append(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)

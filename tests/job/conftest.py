"""What one test notes as secret is not so in the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.job.redaction import forget_secrets


@pytest.fixture(autouse=True)
def no_secrets() -> Iterator[None]:
    forget_secrets()
    yield
    forget_secrets()

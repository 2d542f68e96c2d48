"""Mistakes of a user without the traceback that Spark puts around what Python raises.

Spark sends the text of an exception from a Python process to the JVM, with all its frames, unless a
variable of the environment says otherwise; the process ends then. So where the error is a mistake
that somebody can mend, the variable is set in the last moment, and what arrives is one line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import PenstockError

_HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plain_errors() -> Iterator[None]:
    """Errors of Penstock that are mistakes of a user leave without frames."""
    try:
        yield
    except PenstockError:
        os.environ[_HIDE] = "1"
        raise

"""What Spark says when something is wrong, in one line, and whose mistake it was.

Spark's messages come with plans, SQL states and Java stacks. A person who wrote a job file needs
the first sentence, and the place in the file that it is about. An error of Penstock in a cell comes
back inside Spark's, as the text of a Python traceback: there the message is ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from penstock import errors
from penstock.errors import InputError, PenstockError, QueryError
from penstock.job.redaction import redacted

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What Spark raises: PySpark translates most errors of Java, not all."""

_OURS = re.compile(r"penstock\.errors\.(\w+): (.+)")
_ABSENT = re.compile(r"ModuleNotFoundError: No module named '((?:penstock|numba|sqlglot)\b)")
"""What a worker lacks on whose host Penstock, or a package that it needs, is not installed."""
_PYTHON = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?([A-Za-z_]\w*(?:Error|Exception|Broken))(?:: (.+))?$", re.M
)
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+\.)?(\w+): (.+)$", re.M)
_JAVA = "\n\nJVM stacktrace:\n"
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_NAMED = re.compile(r"\[([A-Z_.0-9]+)\] ")
_PACKAGE = re.compile(r"^(?:[a-z]\w*\.)+(?=\w+: )")
_STAGE = re.compile(r"^Job aborted due to stage failure: Task .*?\(TID \d+\) \(.*?\): ")
_CONDITION = re.compile(r"^\[[A-Z_.0-9]+\] ")


@contextmanager
def blamed_on(where: str) -> Iterator[None]:
    """Errors of the user and of Spark become one line that begins with ``where``."""
    try:
        yield
    except QueryError as error:
        message = f"{where}: {error.message}"
        raise QueryError(message, error.text, error.start, error.end, error.hint) from None
    except PenstockError as error:
        raise type(error)(redacted(f"{where}: {error}")) from None
    except SPARK_ERRORS as error:
        raise InputError(f"{where}: {one_line(error)}") from None


def own_error(error: BaseException) -> PenstockError | None:
    """The error of Penstock that is behind one of Spark's, if it is the user's mistake."""
    text = str(error)
    absent = _ABSENT.search(text)
    if absent is not None:
        return InputError(
            f"Spark's Python workers have no module {absent[1]}: install penstock on their hosts, "
            "or send it along (spark.archives; on Spark Connect addArtifacts)"
        )
    found = _OURS.findall(text)
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, PenstockError):
        return None
    return kind(redacted(message.strip()))


def one_line(error: BaseException) -> str:
    """The sentence of ``error`` that a person needs, without secrets."""
    return redacted(_sentence(error))


def _sentence(error: BaseException) -> str:
    text = str(error)
    ours = own_error(error)
    if ours is not None:
        return str(ours)
    told, _, _ = text.partition(_JAVA)
    found = _PYTHON.findall(told) or _CAUSE.findall(text)
    if found:
        name, message = found[-1]
        return _tidy(f"{name}: {_CONDITION.sub('', message)}" if message else name)
    first, root = _first_line(error), _first_line(_root_cause(error))
    return first if root in first else f"{first.rstrip('.')}: {root}"


def condition_of(error: BaseException) -> str:
    """Spark's name of the error, such as ``PATH_NOT_FOUND``; empty if it has none."""
    if isinstance(error, PySparkException):
        return error.getCondition() or ""
    found = _NAMED.search(str(error))
    return found[1] if found else ""


def _root_cause(error: BaseException) -> BaseException:
    """What it all began with: Spark's first sentence may say no more than what was not done."""
    while (cause := getattr(error, "_cause", None)) is not None:
        error = cause
    return error


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return _tidy(lines[0]) if lines else type(error).__name__


def _tidy(line: str) -> str:
    line = _PACKAGE.sub("", _STAGE.sub("", _STATE.sub("", _CONDITION.sub("", line))))
    line = line.strip().rstrip(";").strip()
    return line if len(line) <= 400 else f"{line[:399]}…"

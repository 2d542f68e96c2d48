"""The schema of a stream, from whatever has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import OptionError


def schema_of(name: str, given: Any) -> Any:
    """The schema of ``given``; what has none stays, for whoever checks the schemas to refuse.

    Taken are schemas, tables, all that speaks Arrow's interface (``__arrow_c_schema__``,
    ``__arrow_c_stream__``: pandas and polars DataFrames), and rows as a list of dicts, in which
    every column needs a value that is not None.
    """
    if isinstance(given, pa.Schema):
        return given
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(given).schema
        if hasattr(given, "__arrow_c_schema__"):
            return pa.schema(given)
        if isinstance(given, Sequence) and given and all(isinstance(r, Mapping) for r in given):
            return _of_rows(name, given)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        line = str(problem).partition("\n")[0]
        raise OptionError(
            f"the schema of {name} cannot be told from what was given: {line}"
        ) from None
    return given


def _of_rows(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Schema:
    keys = dict.fromkeys(key for row in rows for key in row)
    fields = [(key, pa.array([row.get(key) for row in rows]).type) for key in keys]
    for key, kind in fields:
        if pa.types.is_null(kind):
            raise OptionError(
                f"column {key!r} of {name} has no value that tells its type; give a pyarrow schema"
            )
    return pa.schema(fields)

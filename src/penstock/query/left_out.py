"""Columns that a source has and a schema cannot: their types are none of Arrow's.

A host that makes the schema of a source leaves such columns out and writes them down in the
metadata of the schema, so that a query that reads one is refused with the reason, and one that does
not is none the worse for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

_KEY = b"penstock.left_out"


def leaving_out(schema: pa.Schema, types: Mapping[str, str]) -> pa.Schema:
    """``schema``, which lacks the columns in ``types``, name to type as the host calls it."""
    if not types:
        return schema
    return schema.with_metadata({**(schema.metadata or {}), _KEY: json.dumps(dict(types)).encode()})


def left_out(schema: pa.Schema) -> dict[str, str]:
    """The columns that ``schema`` lacks, name to type as the host calls it."""
    types: dict[str, str] = json.loads((schema.metadata or {}).get(_KEY, b"{}"))
    return types

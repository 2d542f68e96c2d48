"""What tells queries apart: a checkpoint is loaded by the query that wrote it, and by no other."""

from __future__ import annotations

import hashlib
from typing import Any

from penstock.query.join_graph import JoinGraph


def fingerprint(query: JoinGraph) -> str:
    """Tells queries apart by what they mean: windows, predicates, output, types of what they read.

    How the text is written does not matter, nor do columns that the query does not read.
    """
    parts: list[Any] = [query.time_unit]
    for block in query.blocks:
        parts += [block.emission, block.predicates, block.select, block.group_by, block.aggregates]
        if block.having is not None:
            parts.append(block.having)
        for stream in block.streams:
            window = stream.window
            read = [*window.partition_by, stream.event_time]
            types = [stream.schema.field(name).type for name in read if name is not None]
            parts += [stream.alias, stream.source, window, stream.event_time, types]
            parts.append(stream.freshness)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def fingerprint_1(query: JoinGraph) -> str:
    """The fingerprint in checkpoints of format 1: the text, schemas, event times and output."""
    parts = [query.text, query.time_unit, str(query.schema)]
    for block in query.blocks:
        for stream in block.streams:
            parts += [stream.alias, stream.source, str(stream.event_time), str(stream.window)]
            parts.append(stream.schema.to_string(show_schema_metadata=False))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

"""Values of Kafka messages as columns: JSON in bulk by Arrow, Avro by fastavro, or bytes.

What cannot be read is a row of NULLs, as with Spark's ``from_json``, with its text in one more
column (:mod:`penstock.sources.json_lines`); of Avro there is no text.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import InputError, OptionError
from penstock.query.unreadable import CORRUPT
from penstock.sources.json_lines import read_objects
from penstock.sources.kafka_client import Records

MESSAGE = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
    ]
)
"""The columns of a message, as Spark's Kafka source has them."""
DECODERS = ("json", "avro")


def decoded(
    records: Records,
    value: pa.Schema | None,
    decode: str | None,
    avro_schema: str | None,
    columns: Sequence[str],
) -> pa.Table:
    """``columns`` of the messages; ``value`` has the types of those that come from values."""
    found: dict[str, Any] = {}
    if value is not None:
        wanted = pa.schema([each for each in value if each.name in columns])
        if not wanted.names:
            parsed = None
        elif decode == "avro":
            parsed = _avro(records.values, wanted, avro_schema)
        else:
            parsed = read_objects(records.values, wanted)
        if parsed is not None:
            found |= {name: parsed.column(name) for name in parsed.column_names}
    own: dict[str, Any] = {
        "key": records.keys,
        "value": records.values,
        "topic": records.topics,
        "partition": records.partitions,
        "offset": records.offsets,
        "timestamp": records.times,
        "timestampType": records.kinds,
    }
    for name in columns:
        if name in found:
            continue
        kind = MESSAGE.field(name).type
        if name == "timestamp":
            at = pa.array(own[name], pa.timestamp("ms", "UTC"))
            found[name] = at.cast(kind)
        else:
            found[name] = pa.array(own[name], kind)
    told = [CORRUPT] if CORRUPT in found else []
    return pa.table({name: found[name] for name in (*columns, *told)})


def _avro(values: Sequence[bytes | None], wanted: pa.Schema, avro_schema: str | None) -> pa.Table:
    """Values in Avro, with the heading of a schema registry or without."""
    try:
        import fastavro
    except ImportError:
        raise OptionError(
            'decode "avro" needs the package fastavro: pip install fastavro'
        ) from None
    if avro_schema is None:
        raise OptionError(
            "avroSchema is missing: the schema that values were written with, as JSON"
        )
    try:
        schema = fastavro.parse_schema(json.loads(avro_schema))
    except (ValueError, fastavro.schema.SchemaParseException) as problem:
        raise OptionError(f"avroSchema is not a schema of Avro: {problem}") from None
    empty: dict[str, Any] = {}
    rows = []
    for value in values:
        if value is None:
            rows.append(empty)
            continue
        start = 5 if value[:1] == b"\0" and len(value) > 5 else 0  # A registry's heading.
        try:
            rows.append(fastavro.schemaless_reader(io.BytesIO(value[start:]), schema, None))
        except (EOFError, ValueError, IndexError, TypeError, StopIteration):
            rows.append(empty)
    try:
        return pa.Table.from_pylist(rows, schema=wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as problem:
        raise InputError(f"values do not fit the schema: {problem}") from None

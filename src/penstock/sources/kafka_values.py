"""Values of Kafka messages as columns: JSON, Avro, or bytes.

What cannot be read is a row of NULLs, as with Spark's ``from_json``, with its text in one more
column (:mod:`penstock.sources.json_lines`, :mod:`penstock.sources.avro_values`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.query.unreadable import CORRUPT
from penstock.sources.avro_values import read_values
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
            parsed = read_values(records.values, wanted, avro_schema)
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

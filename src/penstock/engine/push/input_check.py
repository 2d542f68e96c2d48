"""Batches are checked once, where they enter: kernels follow what is in them without looking.

pyarrow loads a batch that was tampered with as readily as any other: a buffer shorter than its
rows, an offset outside of the text that it cuts, an index outside of its dictionary. Kernels take
addresses and trust them. So of every batch

* all columns are looked at from outside: lengths and buffers (0.2 µs a batch);
* those columns of the query that lead elsewhere, by offsets or by indices, are validated in full,
  texts as UTF-8 too (5 to 7 ns a value, where encoding it as a key takes ten times that).

Columns of fixed width lead nowhere, and columns that the query does not read are never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import InputError

_BATCH, _TABLE = pa.RecordBatch, pa.Table


def leads_elsewhere(type_: pa.DataType) -> bool:
    """Whether values of ``type_`` are found by offsets or indices, or can be out of range."""
    return not pa.types.is_primitive(type_)


class InputCheck:
    """Checks the batches of sources whose columns ``read`` have these types, by source."""

    def __init__(self, read: Mapping[str, Mapping[str, pa.DataType]]) -> None:
        found = {
            source: tuple(name for name, type_ in columns.items() if leads_elsewhere(type_))
            for source, columns in read.items()
        }
        self._followed = {source: names for source, names in found.items() if names}

    def check(self, batches: Mapping[str, Any]) -> None:
        """:class:`InputError` if one of ``batches``, by source, is not what it says it is."""
        source = ""
        try:
            for source, batch in batches.items():
                if batch.__class__ is _BATCH or batch.__class__ is _TABLE:
                    batch.validate()
                    if source in self._followed:
                        self._follow(source, batch)
        except (pa.ArrowException, ValueError, IndexError) as problem:
            line = str(problem).partition("\n")[0]
            raise InputError(
                f"the batch of {source} is damaged: {line}; was it read from a file or a wire that "
                "nobody checked?"
            ) from None
        except (AttributeError, TypeError):
            return  # These are no batches, as whoever takes them in will say.

    def _follow(self, source: str, batch: Any) -> None:
        schema = batch.schema
        for name in self._followed[source]:
            position = schema.get_field_index(name)
            if position >= 0:
                batch.column(position).validate(full=True)

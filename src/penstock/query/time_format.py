"""Event times that are texts: a query takes them as timestamps, and a format says how to read them.

The schema of the query has a timestamp in place of the text, so windows, comparisons and answers
are those of a timestamp; the format goes with the field, as Arrow's metadata. Texts are read where
batches come in (:mod:`penstock.engine.push.given`).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.errors import OptionError
from penstock.query.sources import Sources
from penstock.query.types import Family, family, plain

ISO = "iso"
"""The format of ISO 8601, such as ``2026-03-01T12:00:00.250`` or ``2026-03-01 12:00:00Z``."""
_KEY = b"penstock.time_format"


def with_time_formats(sources: Sources, formats: str | Mapping[str, str] | None) -> Sources:
    """``sources`` whose event times are texts in these ``formats``: one for all that are texts, or
    by source."""
    if formats is None:
        return sources
    if not isinstance(formats, str | Mapping):
        raise OptionError(
            f"event_time_format is {formats!r}; expected a format such as '%Y-%m-%d %H:%M:%S', or "
            f"{ISO!r}, or a dict of stream to format"
        )
    given = dict.fromkeys(sources.schemas, formats) if isinstance(formats, str) else formats
    schemas = dict(sources.schemas)
    for name, text in given.items():
        if name not in schemas:
            raise OptionError(f"event_time_format names {name!r}, which is not in schemas")
        column = sources.event_time_of(name)
        kind = None if column is None else plain(schemas[name].field(column).type)
        if kind is None or family(kind) is not Family.STRING:
            if isinstance(formats, str):
                continue  # The one format is for those that need it.
            raise OptionError(
                f"event_time_format is for event times that are texts; that of {name} is {kind}"
            )
        if not isinstance(text, str) or (text != ISO and "%" not in text):
            raise OptionError(
                f"event_time_format of {name} is {text!r}; expected {ISO!r}, or a format of "
                "strptime such as '%d.%m.%Y %H:%M:%S'"
            )
        zone = "UTC" if "%z" in text else None
        field = pa.field(column, pa.timestamp("us", zone), metadata={_KEY: text})
        schemas[name] = schemas[name].set(schemas[name].get_field_index(column), field)
    return Sources(schemas, sources.event_time)


def time_format_of(field: pa.Field) -> str | None:
    """The format of the texts that ``field`` is read from, if it is."""
    found = (field.metadata or {}).get(_KEY)
    return None if found is None else found.decode()

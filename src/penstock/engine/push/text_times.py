"""Texts as event times: a column of texts to a column of timestamps, by a format.

A text that is no time becomes NULL, so its row counts as one without an event time: it is in the
metrics, and kept for whoever asks for dropped rows.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.query.time_format import ISO

_DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_TIME = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?"
_ISO_8601 = rf"^{_DAY}([T ]{_TIME})?$"
_ZONED = rf"^{_DAY}[T ]{_TIME}(Z|[+-]\d\d(:?\d\d)?)$"
_MOST_DAYS = r"-(02-(29|30|31)|(04|06|09|11)-31)"
"""Days that only some months have: these few texts are looked at one by one."""


def times_of(texts: Any, format_: str, wanted: pa.DataType) -> Any:
    """``texts`` as timestamps of the type ``wanted``."""
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if format_ != ISO:
        found = pc.strptime(texts, format_, wanted.unit, error_is_null=True).cast(wanted)
        return _without_impossible_days(texts, format_, found)
    zoned = pc.match_substring_regex(texts, _ZONED)
    good = pc.or_(pc.match_substring_regex(texts, _ISO_8601), zoned)
    rare = pc.match_substring_regex(texts, _MOST_DAYS)
    if pc.any(pc.and_(good, rare)).as_py():
        good = pc.and_(good, pc.or_(pc.invert(rare), _exist(texts)))
    texts = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")  # Down to microseconds.
    null = pa.scalar(None, texts.type)
    with_zone = pc.if_else(pc.and_(good, zoned), texts, null)
    bare = pc.if_else(pc.and_(good, pc.invert(zoned)), texts, null)
    as_zoned = with_zone.cast(pa.timestamp(wanted.unit, "UTC")).cast(pa.timestamp(wanted.unit))
    return pc.coalesce(bare.cast(pa.timestamp(wanted.unit)), as_zoned).cast(wanted)


def _without_impossible_days(texts: Any, format_: str, found: Any) -> Any:
    """``found`` in ``texts`` without 31 February, which Arrow takes for 3 March.

    Only the first three days of a month can be such, and most texts are what their time is written
    as; the few that are left are looked at one by one.
    """
    doubtful = pc.and_(pc.less_equal(pc.day(found), 3), pc.greater(pc.month(found), 2))
    if not pc.any(doubtful).as_py():
        return found
    written = pc.strftime(found.cast(pa.timestamp("s", found.type.tz), safe=False), format_)
    odd = pc.and_(doubtful, pc.not_equal(written, texts))
    places = pc.indices_nonzero(pc.fill_null(odd, False)).to_pylist()
    wrong = [place for place in places if not _is_a_time(texts[place].as_py(), format_)]
    if not wrong:
        return found
    is_wrong = np.zeros(len(texts), dtype=bool)
    is_wrong[wrong] = True
    return pc.if_else(pa.array(is_wrong), pa.scalar(None, found.type), found)


def _is_a_time(text: str, format_: str) -> bool:
    try:
        datetime.datetime.strptime(text, format_)
    except ValueError:
        return False
    return True


def _exist(texts: Any) -> Any:
    """Whether the day of each text exists."""
    days = pc.strptime(pc.utf8_slice_codeunits(texts, 0, 10), "%Y-%m-%d", "s", error_is_null=True)
    again = pc.strftime(days, "%Y-%m-%d")
    return pc.fill_null(pc.equal(again, pc.utf8_slice_codeunits(texts, 0, 10)), False)

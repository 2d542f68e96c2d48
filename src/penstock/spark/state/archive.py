"""Deliveries that are kept for good, in few large values.

Rows of ``UNBOUNDED`` windows never die, so the deliveries that brought them are kept as long as the
query runs, to be able to lay windows out anew (:mod:`penstock.spark.state.seed`). One value and one
line of the header for each batch would make the header grow for ever, and it is written in every
batch. So they are bundled: eight bundles of a level become one of the next, up to a size that is
read and written in well under a second. A delivery is copied a few times in its life, and a header
has some lines for every :data:`LARGEST_BYTES` of rows.

What a bundle has of a batch are the rows of sources whose windows are unbounded, and the event
times of the batch, by which late rows are told.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from penstock.cells.delivery import Delivery

LARGEST_BYTES = 1 << 25
"""A bundle of this size is not made larger."""
_AT_ONCE = 8
"""Bundles of a level that become one of the next."""

Write = Callable[[str, Sequence[bytes | memoryview]], None]
Read = Callable[[str], bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Bundle:
    """The value ``name`` with ``count`` deliveries, of which ``version`` is the first."""

    name: str
    version: int
    count: int
    size: int
    level: int = 0


def reduced(delivery: Delivery, sources: Collection[str]) -> bytes:
    """The bytes of ``delivery`` with the rows of ``sources`` alone."""
    chunks = {source: each for source, each in delivery.chunks.items() if source in sources}
    return b"".join(Delivery(dict(delivery.newest), chunks).to_parts())


def bundled(blobs: Sequence[bytes | memoryview]) -> bytes:
    """One value of several."""
    sizes = json.dumps([len(blob) for blob in blobs]).encode()
    return b"".join([struct.pack("<I", len(sizes)), sizes, *blobs])


def unbundled(data: bytes | memoryview) -> list[memoryview]:
    """The values of which :func:`bundled` made one.

    >>> [bytes(each) for each in unbundled(bundled([b"one", b"", b"two"]))]
    [b'one', b'', b'two']
    """
    data = memoryview(data)
    (length,) = struct.unpack_from("<I", data)
    found, position = [], 4 + length
    for size in json.loads(bytes(data[4:position])):
        found.append(data[position : position + size])
        position += size
    return found


def merged(
    bundles: Sequence[Bundle], name: Callable[[int, int], str], read: Read, write: Write
) -> tuple[list[Bundle], list[str]]:
    """``bundles`` with those put together that are due, and the names of values that may go.

    ``name`` gives the name of a value by the version of its first delivery and its level.
    """
    found = list(bundles)
    gone: list[str] = []
    while True:
        last = found[-_AT_ONCE:]
        level = last[-1].level if last else 0
        size = sum(each.size for each in last)
        if (
            len(last) < _AT_ONCE
            or any(each.level != level for each in last)
            or size > LARGEST_BYTES
        ):
            return found, gone
        value = bundled([blob for each in last for blob in unbundled(read(each.name))])
        first = last[0].version
        whole = Bundle(
            name(first, level + 1), first, sum(each.count for each in last), len(value), level + 1
        )
        write(whole.name, [value])
        gone += [each.name for each in last]
        found[-_AT_ONCE:] = [whole]

"""Files that are left out since they are gone or corrupt, where that was asked for.

Cells read the same files side by side, and attempts one after the other; a file may vanish between
them. So one process decides, that of the driver, before the cells of a batch begin: it looks which
files are there, and decodes those that may be corrupt. What it leaves out is written down, obeyed
by all who read the batch, and told in its report. From there on a file of the batch that cannot be
read is an error, and the batch is planned again. Then files that have gone since are added; whether
files are corrupt is looked up again only as long as nobody has read the batch to its end.

Windows are read again from files that their batch has read. One that has gone since makes the
window poorer for good, whatever anybody decides. It is left out when it is missed, and the cell
tells in each batch that it had to.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.sources.ledger import Position, Skipped, joined_skips, without
from penstock.sources.portion import Portions
from penstock.spark.data_source.lane import STATICS, Lane


def unreadable(lane: Lane, portions: Portions, is_decoded: bool = True) -> Skipped:
    """The files of ``portions`` that are to be left out."""
    found: dict[str, Mapping[str, str]] = {}
    for name, source in lane.files.items():
        if name in portions:
            names = source.unreadable(portions[name], lane.columns[name], is_decoded)
            if names:
                found[name] = names
    return found


def obeyed(lane: Lane, position: Position) -> Skipped:
    """What was :func:`decided` last of the batch at ``position``."""
    if lane.ledger is None or not lane.files or position.number == 0:
        return {}
    found = lane.ledger.skipped(position)
    if position.number == 1 and lane.fixed:
        return joined_skips(found, lane.ledger.skipped(Position()))
    return found


def decided(lane: Lane, position: Position) -> Skipped:
    """The files that the batch at ``position`` leaves out, decided now; in the first batch, those
    that static relations leave out as well."""
    ledger = lane.ledger
    assert ledger is not None
    found = ledger.skipped(position)
    if lane.skips:
        if position.number == 0:
            portions, is_new = ledger.value(STATICS) or {}, True
        else:
            portions, is_new = ledger.entry(position).portions, ledger.note(position) is None
        more = unreadable(lane, without(portions, found), is_new)
        if more:
            found = joined_skips(found, more)
            ledger.add_skipped(position, found)
    if position.number == 1 and lane.fixed:
        return joined_skips(found, decided(lane, Position()))
    return found

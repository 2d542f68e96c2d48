"""Results that wait: until they die (DSTREAM), or to be shown again (RSTREAM).

They are columns of a table, leaf rows by stream and then birth and death, on an agenda
(:mod:`penstock.engine.output.agenda`) from which they are taken when they are due to die: a push
costs what it adds and takes, and not what is held. On the arrival line deaths come nearer while
results wait, and all of them are looked at. Nothing changes until :meth:`HeldResults.commit`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from penstock.engine.output.agenda import Agenda, ArrivalAgenda
from penstock.engine.state.composites import Composites, none_of

Int64s = NDArray[np.int64]


class HeldResults:
    """Living results, and those staged by the push that is under way."""

    def __init__(self, streams: tuple[str, ...], by_rows: bool) -> None:
        self._streams = sorted(streams)
        self._death = len(streams) + 1
        ids = {stream: row for row, stream in enumerate(self._streams)}
        width = len(streams) + 2
        self._agenda: Agenda | ArrivalAgenda
        if by_rows:
            self._agenda = ArrivalAgenda(width, ids, self._death)
        else:
            self._agenda = Agenda(width, self._death)
        self._new = self._nothing = np.empty((width, 0), np.int64)
        self._none = none_of(self._streams)

    def __len__(self) -> int:
        return len(self._agenda)

    @property
    def nbytes(self) -> int:
        return self._agenda.nbytes

    def rests(self, now: int) -> bool:
        """Whether it is known that none dies before ``now``."""
        return self._agenda.rests(now - 1)

    def begin(self, new: Composites, shorten: Callable[[Composites], None] | None) -> None:
        """Stage ``new``; ``shorten`` brings deaths down to what is known by now."""
        if len(new) == 0:
            self._new = self._nothing
        elif new.table is not None and list(new.ids) == self._streams:
            self._new = new.table
        else:
            rows = [new.ids[stream] for stream in self._streams]
            self._new = np.stack([*rows, new.births, new.deaths])
        if shorten is not None and isinstance(self._agenda, ArrivalAgenda):

            def refresh(ids: dict[str, Int64s], deaths: Int64s) -> None:
                shorten(Composites(ids, deaths, deaths))

            self._agenda.shorten(refresh)
            deaths = new.deaths.copy()  # What was owed may have been made long ago.
            refresh(dict(new.ids), deaths)
            self._new = np.concatenate([self._new[:-1], deaths[None]])

    def take_dead(self, now: int) -> Composites:
        """Remove, among the staged, the results whose death is before ``now``, and return them."""
        dead, count = self._agenda.exchange(now - 1, self._new)
        return self._composites(dead[:, :count])

    def all(self) -> Composites:
        """All staged results."""
        return self._composites(self._agenda.staying())

    def _composites(self, found: Int64s) -> Composites:
        if found.shape[1] == 0:
            return self._none
        ids = dict(zip(self._streams, found, strict=False))
        return Composites(ids, found[-2], found[-1], table=found)

    def commit(self) -> None:
        self._agenda.commit()

    def rollback(self) -> None:
        self._agenda.rollback()

    def tidy(self) -> None:
        """Make room. If there is no memory for that, nothing has changed."""
        if isinstance(self._agenda, ArrivalAgenda) and self._agenda.is_worth_packing:
            self._agenda.pack(lambda numbers: lambda: None)

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``."""
        if alias not in self._streams:
            return
        if isinstance(self._agenda, ArrivalAgenda):
            self._agenda.renumber(alias, mapping, first)
            return
        row = self._streams.index(alias)
        entries = self._agenda.entries()
        entries[row] = mapping[entries[row] - first]
        self._agenda.put(entries)

"""What is kept of a cell, and how a live engine is trusted.

Every batch leaves one *entry*: the delivery of the batch. Now and then it comes with a *base*, a
checkpoint of the engine after the batch. An engine is a function of what was pushed, so a base with
the deliveries behind it pushed once more, their results dropped, is the engine as it was: windows,
clock, late decisions, what set difference holds. A new base is due when the deliveries since the
last one have grown to its size. So a batch writes on average about twice what it brings, whatever
the size of the windows, and a restart reads at most about twice the windows. What lies before the
base before the last is let go: with it go tuples whose window has passed.

An entry has a *nonce*: a digest of the nonce of the entry before it, the bytes of the delivery, the
number of the last order that was obeyed, the fingerprint, and what was measured by then where that
decides what is put off. So it names the whole history of a
cell, and two attempts that do the same have the same one, whoever makes them, wherever and when: a
failed task that is tried again, a speculative copy, a driver that does not know that it was
replaced, a copy of the checkpoint.

Live engines stay in the memory of Python workers (:mod:`penstock.spark.state.engine_cache`). Spark
may run a batch again, or run it in another worker, so a live engine may be ahead of the state,
behind it, or beside it. It has the nonce of the last entry that it took in, and is used only if the
state has this very entry: if it is the last, as it is; if not, after pushing the deliveries behind
it. One that has taken in exactly what is to be taken in now, as when a batch is done twice
(``foreachBatch`` with two actions), has the answer already, if it was held. While an engine works,
it is in no cache.

Catching up is what makes several workers per executor cheap: where partitions move between two
workers, each of them has a live engine that is a few batches behind, and to push what it has missed
costs a fraction of reading a window and building its indexes.

**Orders of people** about the plan (:mod:`penstock.spark.state.plan_orders`) are obeyed at the
beginning of a batch, and an entry has the number of the last one. They are obeyed again, in their
places, when deliveries are pushed again. That matters to the plan alone: results do not depend on
plans, so a batch may be tried again with more orders than before, or with none.

**Probes that a policy dropped** (``shed``) by the clock are not the same when a delivery is pushed
again, which does no harm: a result leaves only in the batch that brings its last tuple. So a
delivery is pushed again within a part of the time of the batch, and other probes may be dropped
this time; to make all of them would take many times as long as the batch may, at the very moment
when time is short. What was lost is told by the entry, whoever has pushed the delivery since.

**Probes that were put off** (``defer``) would do harm: Spark may accept the answer of one attempt
and keep the state of another, or find an answer in the sink when it does a batch again after a
crash, and what one attempt has put off the other may have sent. So all attempts at a batch put off
the same. How many probes a batch may make follows from what the entry before it has measured, of
time as well, and from no clock (:meth:`penstock.Engine.repeat_decisions`); so does the plan. A
batch that has to put off begins with a cell that is just restored from a checkpoint, since live
ones that took in the same are laid out differently, and takes its rows in an order of their own,
since Spark may divide them otherwise. The time that a batch takes too long is made good by the
next one. Orders of people are obeyed after the push here, so that no answer depends on them.

A batch that leaves debt behind always writes a base, debt included, and nobody catches up across
it. Behind the last such base nothing is owed at the end of any batch, so all that was owed has
left, as it does when all probes are made.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from penstock.cells.delivery import Delivery
from penstock.cells.router import Router
from penstock.engine.control.plan_event import PlanEvent
from penstock.engine.overload.overload import Overload
from penstock.engine.overload.repeat import NeedsBase
from penstock.errors import CheckpointError
from penstock.sources.ledger import Note
from penstock.spark.cells.cell import Cell, CellSettings, with_static
from penstock.spark.cells.cell_report import Origin, ways_between
from penstock.spark.cells.reach import Reach
from penstock.spark.state.archive import Bundle, bundled, merged, reduced, unbundled
from penstock.spark.state.cell_store import CellStore, value_name
from penstock.spark.state.engine_cache import EngineCache
from penstock.spark.state.live_cell import HandedOn, LiveCell, Taken
from penstock.spark.state.plan_orders import PlanOrders, obey
from penstock.spark.state.seed import Era, KeptDelivery, OldCell, Rules, Seed, shape_of
from penstock.telemetry.operator_batch import operator_batches

SMALLEST = 1 << 20
"""There is no base before deliveries have this size together."""
MOST_ENTRIES = 64
"""Nor are there more deliveries than this between two bases."""
_NONCE_DIGITS = 32
"""Hexadecimal digits of a nonce: no two different histories have the same 128 bits."""
_REPLAY = 0.4
"""To catch up may take this part of the time of a batch."""
_LEAST_PART = 0.25
"""Part of the usual time for a batch after one that had none left: debts are paid in the end."""
_CHECKSUM_BYTES = 32
"""Of a checkpoint of an engine, at its end."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One batch: the attempt that wrote it, the bytes of its delivery and of its base, if any."""

    version: int
    nonce: str
    size: int
    base_size: int = 0
    owing: bool = False
    """Whether probes were owed after the batch; then there is a base."""
    order: int = 0
    """The number of the last order that was obeyed before the batch."""
    accounts: dict[str, Any] | None = None
    """What an overload policy had done, lost and measured after the batch."""
    plan: str | None = None
    """The plan after the batch, where answers depend on it: under ``defer``."""
    seconds: float | None = None
    """Time that the batch had when its push began, if the budget is a time: that of the next."""
    checksum: str = ""
    """The last bytes of the base, which are its checksum, if probes were owed."""
    newest: dict[str, int] = field(default_factory=dict)
    """The newest event time of each source up to the batch, in ticks."""
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of each source in the delivery, where windows count rows."""

    @property
    def delivery(self) -> str:
        return value_name(self.version, self.nonce, "delivery")

    @property
    def base(self) -> str:
        return value_name(self.version, self.nonce, "base") + self.checksum[:_NONCE_DIGITS]

    @property
    def names(self) -> list[str]:
        return [self.delivery, self.base] if self.base_size else [self.delivery]


@dataclass(slots=True)
class CellHistory:
    """The entries of cell ``number``; ``fingerprint`` tells queries and placements apart.

    ``mark`` stands for the settings in caches of live cells.
    """

    store: CellStore
    settings: CellSettings
    number: int
    fingerprint: str
    orders: PlanOrders = field(default_factory=PlanOrders)
    mark: str = ""
    seed_for: Callable[[str | None], Seed | None] | None = None
    """Windows that were laid out anew in place of the state with this last entry, if they were."""
    entries: list[Entry] = field(default_factory=list)
    kept: list[Entry] = field(default_factory=list)
    """Entries before the first of ``entries`` whose deliveries have rows that may be alive."""
    since: dict[str, int] | None = None
    """Newest event times before the first delivery that is kept, None if that is the very first."""
    archive: list[Bundle] = field(default_factory=list)
    """Deliveries before those of ``kept`` that have rows of windows without an end."""
    lost: bool = False
    """Whether deliveries were let go that have rows which may be alive."""
    sources: list[str] = field(default_factory=list)
    """Sources of whose rows this cell has the copy that counts, once there are entries."""
    shape: dict[str, Any] = field(default_factory=dict)
    """What is kept of each source (:mod:`penstock.spark.state.seed`), once there are entries."""
    eras: list[Era] = field(default_factory=list)
    """The eras before the one of now (:mod:`penstock.spark.state.seed`)."""
    given: str = ""
    """The plan that the settings gave when the last entry was written."""
    _seeded: Seed | None = None

    def read(self) -> None:
        """Read the header; :class:`CheckpointError` if it belongs to something else."""
        text = self.store.header()
        header: dict[str, Any] = {} if text is None else json.loads(text)
        seed = None if self.seed_for is None else self.seed_for(last_nonce(text))
        if seed is not None:
            self._begin_with(seed, header)
            return
        if text is None:
            return
        if header["fingerprint"] != self.fingerprint:
            raise CheckpointError(
                "this checkpoint folder belongs to another query, or to the same one with another "
                f"number of cells: it was written with {header['about']}, and this query has "
                f"{about(self.settings)}; start it with another checkpoint folder"
            )
        self.entries = [Entry(**each) for each in header["entries"]]
        self.kept = [Entry(**each) for each in header["kept"]]
        self.archive = [Bundle(**each) for each in header.get("archive", ())]
        self.since, self.lost = header["since"], header["lost"]
        self.sources, self.shape = header["sources"], header["shape"]
        self.eras = [Era.from_json(each) for each in header.get("eras", ())]
        self.given = header.get("plan", self.given)

    def _begin_with(self, seed: Seed, header: dict[str, Any]) -> None:
        """Replace what the store has by ``seed``."""
        for each in [*header.get("kept", ()), *header.get("entries", ())]:
            self.store.let_go(Entry(**each).names)
        self.store.let_go([each["name"] for each in header.get("archive", ())])
        first, *others = seed.deliveries
        self.entries, newest = [], dict(first.newest)
        self.since = dict(first.newest) or None
        deliveries = [with_static(self.settings, self.number, first), *others]
        for version, delivery in enumerate(deliveries, seed.version - len(others)):
            parts = delivery.to_parts()
            for source, instant in delivery.newest.items():
                newest[source] = max(instant, newest.get(source, instant))
            entry = Entry(version, self._nonce(parts), sum(map(len, parts)), newest=dict(newest))
            entry = replace(entry, rows=self._counted(delivery))
            self.store.write(entry.delivery, parts)
            self.entries.append(entry)
        last = -1
        for rules, count in seed.eras:
            last += count
            self.eras.append(Era(rules, self.entries[last].version, self.entries[last].newest))
        self._seeded = seed

    def take(
        self, delivery: Delivery, cache: EngineCache, due: float | None = None
    ) -> tuple[Taken, LiveCell]:
        """Push ``delivery`` into the cell and write it down; the cell is in ``cache`` then.

        ``due`` is when all should be done, by the performance counter, if there is such a time.
        """
        if not self.entries:
            delivery = with_static(self.settings, self.number, delivery)
        parts = delivery.to_parts()
        nonce = self._nonce(parts)
        known = [nonce, *(entry.nonce for entry in reversed(self.entries))]
        live = cache.take(self.mark, known)
        if live is not None and live.nonce == nonce and live.taken is not None:
            live.base = self._write(parts, live.cell, nonce, live.seconds)
            taken = replace(live.taken, origin="live", pushed=time.perf_counter())
        else:
            handed_on = None if live is None else live.handed_on
            cell, origin = self._current(live, due)
            live, taken = self._push(delivery, parts, cell, origin, nonce, due, handed_on)
        cache.put(self.mark, live)
        return taken, live

    def _nonce(self, parts: Sequence[bytes | memoryview]) -> str:
        """The name of the history with one more delivery, of which these are the bytes."""
        before = self.entries[-1].nonce if self.entries else str(self.number)
        whole = hashlib.sha256()
        for text in (self.fingerprint, before, str(self._order), self._measured()):
            whole.update(f"{len(text)} {text}".encode())
        for part in parts:
            whole.update(part)
        return whole.hexdigest()[:_NONCE_DIGITS]

    def _measured(self) -> str:
        """What decides how much is put off, where anything is."""
        if not (self._puts_off and self.entries):
            return ""
        last = self.entries[-1]
        return json.dumps([last.accounts, last.plan, last.seconds], sort_keys=True)

    @property
    def _puts_off(self) -> bool:
        return Overload.of(self.settings.options.get("overload", "exact")).policy == "defer"

    def _push(
        self,
        delivery: Delivery,
        parts: Sequence[bytes | memoryview],
        cell: Cell,
        origin: Origin,
        nonce: str,
        due: float | None,
        handed_on: HandedOn | None,
    ) -> tuple[LiveCell, Taken]:
        """Push ``delivery``, of which ``parts`` are the bytes, into ``cell`` and write it down.

        ``handed_on`` is what the host did with the delivery before it.
        """
        accounts = self.entries[-1].accounts if self.entries else None
        if accounts is not None:
            cell.engine.take_over_accounts(accounts)
        if handed_on is not None and not self._puts_off:
            cell.engine.note_host(*handed_on)
        before = cell.engine.metrics()
        cell.engine.drain_events()  # Those of a replay have been told.
        cell.engine.drain_dropped()
        refused = [] if self._puts_off else self._obey(cell)
        start = time.perf_counter()
        left = None if due is None else due - start
        if self._puts_off:
            cell, results = self._push_as_any(delivery, cell, accounts)
        else:
            results = cell.push(delivery, left)
        pushed = time.perf_counter()
        if self._puts_off:
            if handed_on is not None:
                cell.engine.note_host(*handed_on)
            refused = self._obey(cell)
        base = self._write(parts, cell, nonce, left)
        after = cell.engine.metrics()
        then, now = before["sources"], after["sources"]
        taken = Taken(
            results,
            origin,
            pushed - start,
            pushed,
            {source: each["rows"] - then[source]["rows"] for source, each in now.items()},
            tuple(cell.engine.drain_dropped()),
            cell.engine.silent(),
            after["state"]["bytes"],
            sum(entry.size + entry.base_size for entry in self.entries),
            str(cell.engine.running_plan),
            cell.engine.watermark,
            operator_batches(str(cell.engine.running_plan), before, after),
            (*refused, *cell.engine.drain_events()),
            _in_brief(after["overload"]),
            *ways_between(before, after),
        )
        return LiveCell(nonce, cell, taken.state_bytes, taken, base, left), taken

    def _push_as_any(
        self, delivery: Delivery, cell: Cell, accounts: Mapping[str, Any] | None
    ) -> tuple[Cell, pa.Table]:
        """The results of ``delivery`` as every attempt at the batch has them, and the cell then.

        ``accounts`` are those of the entry before.
        """
        last = self.entries[-1] if self.entries else None
        option = Overload.of(self.settings.options["overload"])
        seconds = option.seconds
        if seconds is not None and last is not None and last.seconds is not None:
            seconds = min(seconds, max(last.seconds, _LEAST_PART * seconds))
        rows = delivery.counts()
        if not (last is not None and last.owing):
            plan = last.plan if last is not None and self.given == self.settings.plan else None
            if cell.runs(plan or cell.plan):  # What is needed depends on it.
                cell.engine.repeat_decisions(accounts, rows, from_base=False)
                try:
                    return cell, cell.push(delivery, seconds)
                except NeedsBase:
                    pass
            cell = Cell.restore(self.settings, cell.checkpoint(), keep_plan=True)
            if plan is not None:
                cell.follow(plan)
        cell.engine.repeat_decisions(accounts, rows, from_base=True)
        ordered = delivery if self.settings.query.by_rows else delivery.sorted()
        return cell, cell.push(ordered, seconds)

    def _obey(self, cell: Cell) -> list[PlanEvent]:
        """Obey what was ordered since the last entry; the orders that could not be."""
        found = [obey(cell.engine, order) for order in self.orders.between(self._obeyed)]
        return [event for event in found if event is not None]

    @property
    def _order(self) -> int:
        """The last order that is obeyed once the delivery of now is taken in."""
        return max(self._obeyed, self.orders.last)

    @property
    def _obeyed(self) -> int:
        """The last order that the cell has obeyed."""
        return self.entries[-1].order if self.entries else 0

    def _current(self, live: LiveCell | None, due: float | None = None) -> tuple[Cell, Origin]:
        """The cell as of the last entry: the live one if it can be trusted, else made anew."""
        last = self.entries[-1] if self.entries else None
        if last is not None and last.owing:
            base, origin = self._owing_base(last, live)
            return Cell.restore(self.settings, base, self.orders.hold(last.order)), origin
        if live is not None:
            for position, entry in enumerate(self.entries):
                if entry.nonce == live.nonce:
                    missed = self.entries[position + 1 :]
                    if any(entry.owing for entry in missed):
                        break
                    self._replay(live.cell, missed, entry.order, due)
                    return live.cell, "replayed" if missed else "live"
        for position, entry in reversed(list(enumerate(self.entries))):
            if entry.base_size:
                base = bytes(self.store.read(entry.base))
                cell = Cell.restore(self.settings, base, self.orders.hold(entry.order))
                self._replay(cell, self.entries[position + 1 :], entry.order, due)
                return cell, "restored"
        if self._seeded is not None:
            return self._through_eras(self._seeded.eras), "restored"
        cell = Cell(self.settings, self.settings.engine())
        self._replay(cell, self.entries, 0, due)
        return cell, "restored" if self.entries else "new"

    def _through_eras(self, eras: Sequence[tuple[Rules, int]]) -> Cell:
        """A new cell that has taken in all entries, so many by the rules of each of ``eras``."""
        cell, done = None, 0
        for rules, count in eras:
            then = rules.on(self.settings)
            if cell is None:
                cell = Cell(then, then.engine())
            else:
                cell = Cell.restore(then, cell.checkpoint())
            self._replay(cell, self.entries[done : done + count], 0)
            done += count
        assert cell is not None, "a seed has an era"
        return Cell.restore(self.settings, cell.checkpoint())

    def _owing_base(self, last: Entry, live: LiveCell | None) -> tuple[bytes, Origin]:
        """The base of the ``last`` entry, from memory if ``live`` has it."""
        held = live.base if live is not None and live.nonce == last.nonce else b""
        if held and held[-_CHECKSUM_BYTES:].hex() == last.checksum:
            return held, "live"
        return bytes(self.store.read(last.base)), "restored"

    def _replay(
        self, cell: Cell, entries: list[Entry], obeyed: int, due: float | None = None
    ) -> None:
        """Take in deliveries of before, within a part of the time if the budget is a time.

        ``obeyed`` is the last order that the cell has obeyed.
        """
        begin = time.perf_counter()
        seconds = None if due is None else _REPLAY * max(0.0, due - begin) / max(1, len(entries))
        for entry in entries:
            for order in self.orders.between(obeyed, entry.order):
                obey(cell.engine, order)
            obeyed = entry.order
            delivery = Delivery.from_bytes(self.store.read(entry.delivery))
            cell.push(delivery, seconds, again=True)

    def _write(
        self,
        parts: Sequence[bytes | memoryview],
        cell: Cell,
        nonce: str,
        left: float | None,
    ) -> bytes:
        """One more entry, for the delivery with the bytes ``parts``; ``cell`` has taken it in.

        It had ``left`` seconds for that. What it returns is the base, if probes are owed.
        """
        version = self.entries[-1].version + 1 if self.entries else 1
        accounts = cell.engine.overload_accounts()
        entry = Entry(version, nonce, sum(map(len, parts)), order=self._order, accounts=accounts)
        entry = replace(entry, newest=cell.engine.newest)
        if self._puts_off:
            entry = replace(entry, plan=cell.plan, seconds=left)
        if self.settings.query.by_rows:
            entry = replace(entry, rows=self._counted(Delivery.from_bytes(b"".join(parts))))
        self.store.write(entry.delivery, parts)
        based = [i for i, each in enumerate(self.entries) if each.base_size]
        behind = self.entries[based[-1] + 1 :] if based else self.entries
        grown = sum(each.size for each in behind) + entry.size
        largest = max(self.entries[based[-1]].base_size if based else 0, SMALLEST)
        gone: list[Entry] = []
        base = b""
        owing = cell.engine.owes
        if owing or grown > largest or len(behind) + 1 >= MOST_ENTRIES or self._seeded is not None:
            base = cell.checkpoint()
            checksum = base[-_CHECKSUM_BYTES:].hex() if owing else ""
            entry = replace(entry, base_size=len(base), owing=owing, checksum=checksum)
            self.store.write(entry.base, [base])
            if based:
                gone, self.entries = self.entries[: based[-1]], self.entries[based[-1] :]
        self._let_go(gone, cell, nonce)
        self.entries.append(entry)
        header = {
            "fingerprint": self.fingerprint,
            "about": about(self.settings),
            "plan": self.settings.plan,
            "cell": self.number,
            "cells": self.settings.placement.cells,
            "rules": asdict(Rules.of(self.settings)),
            "eras": [asdict(each) for each in self.eras],
            "sources": self.sources or self._sources(),
            "shape": self.shape or shape_of(self.settings.query),
            "since": self.since,
            "lost": self.lost,
            "archive": [asdict(each) for each in self.archive],
            "kept": [asdict(each) for each in self.kept],
            "entries": [asdict(each) for each in self.entries],
        }
        self.store.put_header(json.dumps(header))
        return base if owing else b""

    def _let_go(self, gone: list[Entry], cell: Cell, nonce: str) -> None:
        """``gone`` is not needed to make the cell anew; deliveries that may be alive stay.

        ``nonce`` is that of the entry that is written now.
        """
        self.store.let_go([each.base for each in gone if each.base_size])
        if not gone:
            return
        candidates = self.kept + [replace(each, base_size=0, accounts=None) for each in gone]
        reach = Reach.of(self.settings.query)
        if None in reach.counts.values():
            self.store.let_go([each.delivery for each in candidates])
            self.kept, self.lost = [], True
            return
        endless = {source for source, span in reach.spans.items() if span is None}
        ending = {source: span for source, span in reach.spans.items() if span is not None}
        within = Reach(ending, reach.counts)
        ticks = 1_000_000 // self.settings.query.ticks_per_millisecond
        mark = cell.engine.watermark
        watermark = None if mark is None else mark * ticks
        newer: Counter[str] = Counter()
        for each in self.entries:
            newer.update(each.rows)
        first = len(candidates)
        while first > 0:
            newest = {s: each * ticks for s, each in candidates[first - 1].newest.items()}
            if not within.goes_on(Note(newest), watermark, newer):
                break
            first -= 1
            newer.update(candidates[first].rows)
        passed, self.kept = candidates[:first], candidates[first:]
        if endless:
            self._put_into_archive(passed, endless, nonce)
        elif passed:
            self.since = passed[-1].newest
        self.store.let_go([each.delivery for each in passed])

    def _put_into_archive(self, passed: list[Entry], endless: set[str], nonce: str) -> None:
        """Keep the rows of ``endless`` sources that came with the entries ``passed``."""
        for each in passed:
            blob = reduced(Delivery.from_bytes(self.store.read(each.delivery)), endless)
            value = bundled([blob])
            name = value_name(each.version, nonce, "bundle")
            self.store.write(name, [value])
            bundle = Bundle(name, each.version, 1, len(value))
            self.archive, done = merged(
                [*self.archive, bundle],
                lambda version, level: value_name(version, nonce, f"bundle-{level}"),
                self.store.read,
                self.store.write,
            )
            self.store.let_go(done)

    def _counted(self, delivery: Delivery) -> dict[str, int]:
        """Rows of ``delivery`` by source, where windows count rows."""
        return delivery.counts() if self.settings.query.by_rows else {}

    def _sources(self) -> list[str]:
        """Sources of whose rows this cell has the copy that counts."""
        query, placement = self.settings.query, self.settings.placement
        if placement.cells == 1:
            return list(query.sources)
        return sorted(Router(query, placement).first_copies(self.number))


def laid_out(text: str, read: Callable[[str], bytes | memoryview]) -> OldCell:
    """The windows of the cell with the header ``text``, to be laid out anew.

    ``read`` gives the value with a name.
    """
    header: dict[str, Any] = json.loads(text)
    entries = [Entry(**each) for each in [*header["kept"], *header["entries"]]]
    reason = None
    if header["lost"]:
        reason = "windows of PARTITION BY … ROWS, and of EXCEPT with ROWS, cannot be laid out anew"
    elif entries[-1].owing:
        reason = (
            "probes are owed, which only the query as it was can make up for: start it as it was "
            "until nothing is owed"
        )
    deliveries = []
    for bundle in [] if reason else [Bundle(**each) for each in header.get("archive", ())]:
        for number, blob in enumerate(unbundled(read(bundle.name))):
            delivery = Delivery.from_bytes(blob)
            deliveries.append(KeptDelivery(bundle.version + number, delivery.newest, delivery))
    deliveries += [
        KeptDelivery(each.version, each.newest, Delivery.from_bytes(read(each.delivery)))
        for each in (() if reason else entries)
    ]
    last = entries[-1]
    # Before there were eras, a header had the delays alone.
    rules = Rules(**header.get("rules", {"delays": header.get("delays", {})}))
    return OldCell(
        frozenset(header["sources"]),
        [
            *(Era.from_json(each) for each in header.get("eras", ())),
            Era(rules, last.version, last.newest),
        ],
        header["since"],
        header["shape"],
        deliveries,
        reason,
    )


def last_nonce(header: str | None) -> str | None:
    """The nonce of the last entry in ``header``, None if there is none."""
    return None if header is None else str(json.loads(header)["entries"][-1]["nonce"])


def _in_brief(overload: Mapping[str, Any]) -> dict[str, Any]:
    """What the report of a batch says about a cell that is limited."""
    if "budget" not in overload:
        return {}
    long = ("allocation", "shares")
    return {name: value for name, value in overload.items() if name not in long}


def about(settings: CellSettings) -> str:
    """A query and its placement in one line, for messages."""
    cells = settings.placement.cells
    text = " ".join(settings.query.text.split())
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return f"{cells} {'cell' if cells == 1 else 'cells'}: {shown}"

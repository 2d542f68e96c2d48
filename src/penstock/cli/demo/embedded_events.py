"""The embedded demo as events: a micro-batch is what the engine did in a quarter of a second.

So the page shows it as it shows a job on Spark with one cell. The engine is in this process, so
that commands of the page can be carried out at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

import penstock
from penstock.cli.demo.progress import Progress
from penstock.cli.demo.streams import ABOUT, SCHEMAS
from penstock.cli.live_page import LivePage
from penstock.errors import PenstockError
from penstock.telemetry import Batch, BatchNews, CellBatch, Order, Start, Stop
from penstock.telemetry.operator_batch import operator_batches

EVERY = 0.25
_RUN = "embedded"


class EmbeddedEvents:
    """Tells ``page`` what ``engine`` does, and the engine what the page asks for."""

    def __init__(
        self, engine: penstock.Engine, page: LivePage, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self._page = page
        self._clock = clock
        self._before = engine.metrics()
        self._began = self._first = clock()
        self._batch = 0
        self._news = BatchNews()
        self._rows: Counter[str] = Counter()
        self._results = 0
        self._cpu = 0.0
        page.check = self._check
        page.show(
            [
                Start(
                    at=self._now(),
                    run=_RUN,
                    job=ABOUT,
                    query=engine.query.text,
                    plan=str(engine.plan),
                    cells=1,
                    placement="one engine, no Spark",
                    sources=dict.fromkeys(SCHEMAS, "generated"),
                    sink="this page",
                    versions={"penstock": penstock.__version__},
                    accepts=("pin", "undo", "unpin"),
                    streams={s.alias: s.source for s in engine.query.streams},
                )
            ]
        )

    def _check(self, command: Mapping[str, str]) -> None:
        """Raise what is wrong with the plan of a pin."""
        if command["command"] == "pin":
            penstock.Engine(self._engine.query, plan=command.get("plan", ""))

    def note(
        self, batches: Mapping[str, pa.Table], table: pa.Table, cpu: float, progress: Progress
    ) -> None:
        """A push is done, which took ``cpu`` seconds."""
        self._rows.update({name: len(batch) for name, batch in batches.items()})
        self._results += len(table)
        self._cpu += cpu
        if self._clock() - self._began >= EVERY:
            self._tell()
            self._page.show_results(progress.latest)
        self._tell_decisions()
        for command in self._page.commands():
            self._obey(command)
            self._tell_decisions()

    def end(self, progress: Progress) -> None:
        """The demo is over."""
        if self._rows:
            self._tell()
        seconds = round(self._clock() - self._first, 3)
        self._page.show(
            [
                Stop(
                    self._now(),
                    _RUN,
                    "finished",
                    self._batch,
                    progress.rows,
                    progress.results,
                    seconds,
                )
            ]
        )

    def _milliseconds(self, ticks: int | None) -> int | None:
        return None if ticks is None else ticks // self._engine.query.ticks_per_millisecond

    def _tell(self) -> None:
        metrics, plan, now = self._engine.metrics(), str(self._engine.running_plan), self._clock()
        new = {
            name: {count: each[count] - self._before["sources"][name][count] for count in each}
            for name, each in metrics["sources"].items()
        }
        late = {name: each["late"] for name, each in new.items()}
        seconds = now - self._began
        both: dict[str, Any] = {
            "rows": dict(self._rows),
            "results": self._results,
            "late": late,
            "state_bytes": metrics["state"]["bytes"],
            "stored_bytes": 0,
            "engine_seconds": self._cpu,
        }
        overload = metrics["overload"] if "budget" in metrics["overload"] else {}
        cell = CellBatch(
            cell=0,
            total_seconds=self._cpu,
            origin="live",
            plan=plan,
            overload={n: each for n, each in overload.items() if n not in ("allocation", "shares")},
            **both,
        )
        operators = operator_batches(plan, self._before, metrics)
        batch = Batch(
            at=_iso(self._began),
            run=_RUN,
            batch=self._batch,
            seconds=seconds,
            cells=(cell,),
            operators=operators,
            dropped={
                name: {"late": each["late"], "no event time": each["null_time"]}
                for name, each in new.items()
            },
            filtered={name: each["filtered"] for name, each in new.items()},
            silent=metrics["silent"],
            watermark=self._milliseconds(self._engine.watermark),
            newest={
                name: at // self._engine.query.ticks_per_millisecond
                for name, at in self._engine.newest.items()
            },
            **both,
        )
        self._page.show([batch, *self._news.of(batch)])
        self._batch += 1
        self._before, self._began = metrics, now
        self._rows.clear()
        self._results, self._cpu = 0, 0.0

    def _obey(self, command: Mapping[str, str]) -> None:
        try:
            if command["command"] == "pin":
                self._engine.pin(command["plan"])
            elif command["command"] == "undo":
                self._engine.undo()
            else:
                self._engine.unpin()
        except PenstockError as error:
            plan = command.get("plan", "")
            refused = Order(self._now(), _RUN, command["command"], plan=plan, refused=str(error))
            self._page.show([refused])

    def _tell_decisions(self) -> None:
        for event in self._engine.drain_events():
            fields = event.to_json()
            fields |= {"after_seconds": fields.pop("at"), "after_rows": fields.pop("rows")}
            where = {"at": self._now(), "run": _RUN, "batch": self._batch, "cell": 0}
            self._page.show_plain({"version": 1, "event": "decision", **where, **fields})

    def _now(self) -> str:
        return _iso(self._clock())


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""``penstock bench peers``: every chosen peer on every chosen case, one at a time.

A round goes through everything once; figures are medians over rounds. For each case the reference
comes first, as the answers of the others are compared with its own.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import penstock
from penstock.errors import OptionError, PenstockError
from penstock_studies.peers.bounded_run import DONE, Bounds, Outcome, run_bounded
from penstock_studies.peers.cases import CASES, QUICK, Case
from penstock_studies.peers.environment import interpreter
from penstock_studies.peers.input_files import write_files
from penstock_studies.peers.peer import ORDERS, PEERS, REFERENCE, Peer, chosen_peers
from penstock_studies.peers.result_store import ResultStore, key_of

_FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
"""Variables of this process that the interpreter of a peer must not see."""


@dataclass(frozen=True)
class Settings:
    """What to measure, and within which bounds."""

    cases: tuple[Case, ...]
    peers: tuple[Peer, ...]
    rounds: int
    cores: int
    bounds: Bounds
    cache: Path
    fresh: bool = False

    @classmethod
    def of(
        cls,
        cache: Path,
        cases: Sequence[str] | None = None,
        peers: Sequence[str] | None = None,
        rounds: int = 1,
        cores: int = 1,
        seconds: float = 300.0,
        memory_gb: float = 8.0,
        shrink: float | None = None,
        quick: bool = False,
        fresh: bool = False,
    ) -> Settings:
        """Check every choice, and say what exists."""
        for name in cases or ():
            if name not in CASES:
                raise OptionError(f"no case {name!r}; choose from: {', '.join(CASES)}")
        for title, number in (("rounds", rounds), ("cores", cores)):
            if number < 1:
                raise OptionError(f"--{title} is 1 or more, not {number}")
        for title, size in (("seconds", seconds), ("memory", memory_gb)):
            if not size > 0:
                raise OptionError(f"--{title} is more than 0, not {size:g}")
        factor = shrink if shrink is not None else QUICK if quick else 1
        if not factor >= 1:
            raise OptionError(f"--shrink is 1 or more, not {factor:g}")
        return cls(
            cases=tuple(c.smaller(factor) for c in CASES.values() if not cases or c.name in cases),
            peers=chosen_peers(peers),
            rounds=rounds,
            cores=cores,
            bounds=Bounds(seconds, round(memory_gb * 1e9)),
            cache=cache,
            fresh=fresh,
        )


@dataclass
class Line:
    """One line of the table, with what every round gave."""

    case: Case
    peer: Peer
    variant: str
    rounds: list[Outcome] = field(default_factory=list)
    wrong: str = ""
    checked: bool = False

    @property
    def ended(self) -> Outcome | None:
        """A round that did not reach its end, if there is one."""
        return next((o for o in self.rounds if o.status != DONE), None)

    @property
    def cpu(self) -> float:
        return statistics.median(o.cpu for o in self.rounds)

    @property
    def start_cpu(self) -> float:
        return statistics.median(o.start_cpu for o in self.rounds)

    @property
    def rows_per_second(self) -> float:
        """Input rows per second of the wall clock."""
        return self.case.tuples / max(1e-9, statistics.median(o.wall for o in self.rounds))

    @property
    def peak_bytes(self) -> int:
        return max(o.peak_bytes for o in self.rounds)

    def told(self, name: str) -> Any:
        return self.rounds[-1].told.get(name)

    def check(self, answer: Mapping[str, Any]) -> None:
        """Compare the results with ``answer``."""
        for outcome in self.rounds:
            if outcome.status == DONE:
                self.checked = True
                found, right = outcome.told["results"], answer["results"]
                if found != right:
                    self.wrong = f"{found:,} results instead of {right:,}"
                elif outcome.told["sums"] != answer["sums"]:
                    self.wrong = f"other results, though as many ({found:,})"


class PeersBench:
    """Runs the peers and keeps what they gave."""

    def __init__(self, settings: Settings, reference: Peer = PEERS[REFERENCE]) -> None:
        self._settings = settings
        self._reference = reference
        self._store = ResultStore(settings.cache / "results", settings.bounds)
        self._pythons: dict[str, Path | PenstockError] = {}
        self.lines = [
            Line(case, peer, variant)
            for case in settings.cases
            for peer in settings.peers
            for variant in _variants(case, peer)
        ]
        self._total = len(self.lines) * settings.rounds
        self._done = self._measured = 0
        self._spent = 0.0

    def run(self) -> list[Line]:
        """Measure what is not known yet; the lines with their verdicts."""
        with _scratch() as inputs:
            self._measure(Path(inputs))
        return self.lines

    def _measure(self, inputs: Path) -> None:
        for number in range(self._settings.rounds):
            for line in self.lines:
                began = time.monotonic()
                outcome, known = self._outcome(line.case, line.peer, line.variant, number, inputs)
                line.rounds.append(outcome)
                self._done += 1
                if not known:
                    self._measured += 1
                    self._spent += time.monotonic() - began
                self._progress(line, outcome, known)
        for case in self._settings.cases:
            answer = self._answer(case, inputs)
            if answer is not None:
                for line in self.lines:
                    if line.case is case:
                        line.check(answer)

    def _answer(self, case: Case, inputs: Path) -> dict[str, Any] | None:
        """What the reference finds, whether or not it is among the chosen peers."""
        for line in self.lines:
            if line.case is case and line.peer is self._reference and line.ended is None:
                return line.rounds[0].told
        variant = self._reference.variants[0]
        outcome, _ = self._outcome(case, self._reference, variant, 0, inputs)
        return outcome.told if outcome.status == DONE else None

    def _outcome(
        self, case: Case, peer: Peer, variant: str, number: int, inputs: Path
    ) -> tuple[Outcome, bool]:
        """One run, or what an earlier one left behind; whether it was known."""
        key = key_of(case, peer, variant, self._settings.cores, number)
        known = None if self._settings.fresh else self._store.find(key)
        if known is not None:
            return known, True
        python = self._python_of(peer)
        if isinstance(python, PenstockError):
            return Outcome(reason=f"not installed: {python}"), False
        with _scratch() as work:
            orders = self._orders(case, peer, variant, inputs, Path(work))
            outcome = self._run(peer, python, orders, Path(work))
        self._store.keep(key, outcome)
        return outcome, False

    def _python_of(self, peer: Peer) -> Path | PenstockError:
        """Its interpreter, or why there is none."""
        if peer.name not in self._pythons:
            if peer.requirements is not None:
                say(f"the environment of {peer.title}")
            try:
                python: Path | PenstockError = interpreter(
                    peer, self._settings.cache / "environments"
                )
            except PenstockError as error:
                python = error
            self._pythons[peer.name] = python
        return self._pythons[peer.name]

    def _orders(
        self, case: Case, peer: Peer, variant: str, inputs: Path, work: Path
    ) -> dict[str, Any]:
        """What the script of ``peer`` is told; see ``scripts/hand_over.py``."""
        return {
            name: {
                "streams": _streams(part, peer.files, inputs),
                "pairs": part.workload.pairs,
                "window": part.workload.window,
                "query": part.workload.query,
                "plan": part.better_plan,
                "sequence": part.better if variant == "better" else part.written,
                "peer": peer.name,
                "variant": variant,
                "cores": self._settings.cores,
                "memory": self._settings.bounds.memory,
                "work": str(work / name),
            }
            for name, part in (("rehearsal", case.rehearsal()), ("job", case))
        }

    def _run(self, peer: Peer, python: Path, orders: dict[str, Any], work: Path) -> Outcome:
        try:
            environment = _environment(peer)
        except PenstockError as error:
            return Outcome(reason=str(error))
        command = [str(python), str(peer.script)]
        return run_bounded(command, orders, self._settings.bounds, environment, work / "log")

    def _progress(self, line: Line, outcome: Outcome, known: bool) -> None:
        text = f"{line.case.name}, {line.peer.title}, {line.variant}: "
        if outcome.status == DONE:
            text += f"{outcome.cpu:.2f} CPU s{' (kept)' if known else ''}"
        else:
            text += outcome.reason
        left = self._total - self._done
        share = f"{100 * self._done // self._total:3d} %"
        if self._measured and left:
            minutes = left * self._spent / self._measured / 60
            share += f", about {minutes:.0f} min left"
        say(f"[{share}] {text}")


def say(text: str) -> None:
    print(f"penstock: {text}", file=sys.stderr, flush=True)


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="penstock-peers-", ignore_cleanup_errors=True)


def _variants(case: Case, peer: Peer) -> Sequence[str]:
    """The better order is not measured where it is the one written, unless it is another plan."""
    one_plan = peer.kind != "penstock" or len(case.written) == 2
    if case.better == case.written and one_plan and set(ORDERS) <= set(peer.variants):
        return [variant for variant in peer.variants if variant != "better"]
    return peer.variants


def _streams(case: Case, form: str, inputs: Path) -> dict[str, Any]:
    workload = case.workload
    name = f"{case.name}-{workload.rows}-{workload.window}-{form}"
    files = write_files(workload, form, inputs / name)
    return {
        stream: {"columns": list(columns), "file": files[stream]}
        for stream, columns in workload.columns.items()
    }


def _environment(peer: Peer) -> dict[str, str]:
    """The variables for the process of a peer."""
    values = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    values["PYTHONWARNINGS"] = "ignore"
    if peer.requirements is None:
        values["PYTHONPATH"] = str(Path(penstock.__file__).parents[1])
    if peer.java:
        from penstock.spark.start.java import find_java

        values["JAVA_HOME"] = str(find_java(values).home)
    return values


def to_json(lines: Sequence[Line]) -> str:
    """All rounds of all lines."""
    return json.dumps(
        [
            {
                "case": line.case.workload.to_json(),
                "peer": line.peer.name,
                "variant": line.variant,
                "wrong": line.wrong,
                "checked": line.checked,
                "rounds": [outcome.to_json() for outcome in line.rounds],
            }
            for line in lines
        ],
        indent=1,
    )

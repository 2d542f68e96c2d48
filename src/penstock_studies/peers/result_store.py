"""Measurements that are kept, so that a run that was stopped goes on where it was.

A measurement is found again by what it depends on: case and size, peer, variant, versions, script,
cores, round. For Penstock's own lines the version is a digest of its source. What was stopped by a
bound counts as measured under that bound only; what failed is tried again.
"""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

import penstock
from penstock_studies.peers.bounded_run import DONE, FAILED, Bounds, Outcome
from penstock_studies.peers.cases import Case
from penstock_studies.peers.peer import HAND_OVER, Peer


class ResultStore:
    """Outcomes as files in a folder."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self._folder = folder
        self._bounds = bounds
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, key: str) -> Outcome | None:
        try:
            kept = json.loads((self._folder / f"{key}.json").read_text())
            outcome = Outcome(**kept["outcome"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if outcome.status != DONE and kept["bounds"] != vars(self._bounds):
            return None
        return outcome

    def keep(self, key: str, outcome: Outcome) -> None:
        if outcome.status == FAILED:
            return
        text = json.dumps({"outcome": outcome.to_json(), "bounds": vars(self._bounds)})
        draft = self._folder / f"{key}.draft"
        draft.write_text(text)
        draft.rename(self._folder / f"{key}.json")


def key_of(case: Case, peer: Peer, variant: str, cores: int, number: int) -> str:
    """The name of a measurement."""
    depends: dict[str, Any] = {
        "case": case.workload.to_json(),
        "sequence": case.better if variant == "better" else case.written,
        "plan": case.better_plan,
        "peer": peer.name,
        "variant": variant,
        "version": peer.requirements.read_text() if peer.requirements else _own_digest(),
        "scripts": [peer.script.read_text(), HAND_OVER.read_text()],
        "python": platform.python_version(),
        "cores": cores,
        "round": number,
    }
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:16]
    return f"{case.name}-{peer.name}-{variant}-{digest}"


@cache
def _own_digest() -> str:
    """A digest of the package's source, the benchmarks apart."""
    folder = Path(penstock.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if "cli" not in file.relative_to(folder).parts:
            digest.update(file.read_bytes())
    return digest.hexdigest()

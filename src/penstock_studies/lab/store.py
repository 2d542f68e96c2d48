"""Points that have been measured, as files: one JSON file for each.

The name of a file is a digest of the function, its parameters, the seed and the version of the
code, so a point is found again exactly when measuring it again would mean the same. A file appears
in one step (written beside, then renamed): an interrupted run leaves whole points or none.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock_studies.lab.experiment import Point, Row


@dataclass(frozen=True)
class Measured:
    """A point that was measured: its rows, and where they come from."""

    function: str
    parameters: dict[str, Any]
    seed: int
    code: str
    date: str
    seconds: float
    machine: dict[str, str]
    rows: list[Row]


class Store:
    """The points in ``folder``, of one version of the code."""

    def __init__(self, folder: Path, code: str) -> None:
        self.folder = folder
        self.code = code

    def get(self, point: Point, seed: int) -> Measured | None:
        """The point, if it has been measured."""
        try:
            return Measured(**json.loads(self._file(point, seed).read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def put(self, point: Point, measured: Measured) -> None:
        file = self._file(point, measured.seed)
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(asdict(measured), indent=1))
        part.replace(file)

    def _file(self, point: Point, seed: int) -> Path:
        key = json.dumps([point.function, dict(point.parameters), seed, self.code], sort_keys=True)
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        name = point.function.rpartition(":")[2].replace("_", "-")
        return self.folder / "points" / f"{name}-{digest}.json"

"""Whose a checkpoint folder is.

The cells of a query find out in their first batch that the state they read is not theirs. A job
need not wait for that: a small file in its checkpoint folder, which Spark does not look at, says
which query it belongs to. It also keeps the number of cells, so that a job with ``cells = "auto"``
goes on with the cells that it began with when it is moved to a machine with other cores.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.engine.recovery.checkpoint import fingerprint
from penstock.errors import CheckpointError
from penstock.job.job import local_path
from penstock.query.join_graph import JoinGraph
from penstock.telemetry.private_file import read_private, replace_private

NAME = "penstock.json"


@dataclass(frozen=True, slots=True)
class CheckpointOwner:
    """The query that a checkpoint folder belongs to."""

    query: str
    fingerprint: str
    cells: int

    @classmethod
    def of(cls, query: JoinGraph, cells: int) -> CheckpointOwner:
        return cls(" ".join(query.text.split()), str(fingerprint(query)), cells)

    @classmethod
    def read(cls, address: str) -> CheckpointOwner | None:
        """The owner of the folder; None if it is new, elsewhere, or not of a job."""
        folder = local_path(address)
        try:
            return None if folder is None else cls(**json.loads(read_private(folder / NAME)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def check(self, query: JoinGraph, address: str) -> None:
        """:class:`CheckpointError` unless ``query`` is the owner."""
        if self.fingerprint != str(fingerprint(query)):
            raise CheckpointError(
                f"found {address}, which belongs to another query ({_cut(self.query)}), expected a "
                "new folder or that of this query; name another, or delete it to begin anew"
            )

    def write(self, address: str) -> None:
        folder = local_path(address)
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        replace_private(folder / NAME, f"{json.dumps(asdict(self))}\n".encode())


def last_batch(address: str) -> int | None:
    """The last micro-batch that is committed in the folder; None if nothing has begun in it."""
    folder = local_path(address)
    if folder is None or not (folder / "offsets").is_dir():
        return None
    commits = [int(f.name) for f in _files(folder / "commits") if f.name.isdecimal()]
    return max(commits, default=-1)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"

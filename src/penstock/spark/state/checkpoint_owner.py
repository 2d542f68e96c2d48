"""Whose a checkpoint folder is.

The cells of a query find out in their first batch that the state they read is not theirs. A job
need not wait for that: a small file in its checkpoint folder, which Spark does not look at, says
which query it belongs to. It also keeps the number of cells, so that a job with ``cells = "auto"``
goes on with the cells that it began with when it is moved to a machine with other cores.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from penstock.engine.recovery.fingerprint import fingerprint
from penstock.errors import CheckpointError
from penstock.query.join_graph import JoinGraph
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.seed import shape_of, unkept

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
    def read(cls, files: CheckpointFiles) -> CheckpointOwner | None:
        """The owner of the folder; None if it is new, out of reach, or not of a job."""
        try:
            return cls(**json.loads(files.read(NAME)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None

    def check(self, query: JoinGraph, address: str, before: JoinGraph | None) -> None:
        """:class:`CheckpointError` unless ``query`` is the owner, or can go on with its windows.

        ``before`` is the query of the owner, None if it cannot be had any more.
        """
        if self.fingerprint == str(fingerprint(query)):
            return
        reason = "it reads other columns"
        if before is not None:
            reason = unkept(shape_of(before), shape_of(query)) or ""
            if not reason:
                return
        raise CheckpointError(
            f"found {address}, which belongs to another query ({_cut(self.query)}), and {reason}; "
            "expected a new folder or that of this query: name another, or delete it to begin anew"
        )

    def write(self, files: CheckpointFiles) -> None:
        files.write(NAME, f"{json.dumps(asdict(self))}\n".encode())


def last_batch(files: CheckpointFiles) -> int | None:
    """The last micro-batch that is committed in the folder; None if nothing has begun in it."""
    try:
        if files.names("offsets") is None:
            return None
        commits = [int(name) for name in files.names("commits") or () if name.isdecimal()]
    except OSError:
        return None
    return max(commits, default=-1)


def _cut(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"

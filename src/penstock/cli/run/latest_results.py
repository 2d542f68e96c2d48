"""The newest rows of a sink that is a folder of parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from penstock.job import Sink

SHOWN = 12


class LatestResults:
    """Looks into ``folder``, at files that it has not seen."""

    def __init__(self, folder: Path, shown: int = SHOWN) -> None:
        self._folder = folder
        self._shown = shown
        self._seen: dict[Path, float] = {}
        self._rows: list[dict[str, Any]] = []

    @classmethod
    def of(cls, sink: Sink) -> LatestResults | None:
        """Those of ``sink``, if it writes parquet on this machine."""
        if sink.format != "parquet" or sink.path is None or "://" in sink.path:
            return None
        return cls(Path(sink.path))

    def rows(self) -> list[dict[str, Any]]:
        """The newest rows by now."""
        files = {file: file.stat().st_mtime for file in self._folder.glob("part-*.parquet")}
        new = [file for file in files if file not in self._seen]
        self._seen = files
        for file in sorted(new, key=lambda each: files[each])[-2:]:
            try:
                table = pq.read_table(file)
            except (OSError, pa.ArrowInvalid):
                del self._seen[file]  # Spark is still writing it.
                continue
            tail = table.slice(max(0, len(table) - self._shown)).to_pylist()
            self._rows = [*self._rows, *tail][-self._shown :]
        return self._rows

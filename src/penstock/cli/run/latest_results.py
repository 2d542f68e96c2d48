"""The newest rows of a sink that is a folder of files on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from penstock.job import Sink

SHOWN = 12
_LARGEST = 64 << 20
"""Bytes of a file that is looked into."""

Reader: TypeAlias = Callable[[Path, Mapping[str, str]], pa.Table]


def _parquet(file: Path, options: Mapping[str, str]) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file).read()  # Not read_table: it would add columns of folder names.


def _orc(file: Path, options: Mapping[str, str]) -> pa.Table:
    from pyarrow import orc

    return orc.ORCFile(file).read()


def _json(file: Path, options: Mapping[str, str]) -> pa.Table:
    import pyarrow.json

    return pyarrow.json.read_json(file)


def _csv(file: Path, options: Mapping[str, str]) -> pa.Table:
    import pyarrow.csv

    named = str(options.get("header", "false")).lower() == "true"
    return pyarrow.csv.read_csv(
        file,
        pyarrow.csv.ReadOptions(autogenerate_column_names=not named),
        pyarrow.csv.ParseOptions(delimiter=options.get("sep", options.get("delimiter", ","))),
    )


READERS: dict[str, Reader] = {"parquet": _parquet, "orc": _orc, "json": _json, "csv": _csv}


class LatestResults:
    """Looks into ``folder``, at files that it has not seen; ``kind`` is their format."""

    def __init__(
        self,
        folder: Path,
        shown: int = SHOWN,
        kind: str = "parquet",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._shown = shown
        self._kind = kind
        self._options = options or {}
        self._seen: dict[Path, float] = {}
        self._rows: list[dict[str, Any]] = []

    @classmethod
    def of(cls, sink: Sink) -> LatestResults | None:
        """Those of ``sink``, if it writes files on this machine in a format that is known."""
        if sink.format not in READERS or sink.path is None or "://" in sink.path:
            return None
        return cls(Path(sink.path), kind=sink.format, options=sink.options)

    def rows(self) -> list[dict[str, Any]]:
        """The newest rows by now."""
        found = self._folder.rglob(f"part-*.{self._kind}*")
        files = {file: file.stat().st_mtime for file in found}
        new = [file for file in files if file not in self._seen]
        self._seen = files
        for file in sorted(new, key=lambda each: files[each])[-2:]:
            try:
                size = file.stat().st_size
                if not 0 < size <= _LARGEST:
                    continue
                table = READERS[self._kind](file, self._options)
            except (OSError, pa.ArrowInvalid):
                del self._seen[file]  # Spark is still writing it.
                continue
            folders = file.relative_to(self._folder).parts[:-1]
            within = dict(name.split("=", 1) for name in folders if "=" in name)
            tail = table.slice(max(0, len(table) - self._shown)).to_pylist()
            self._rows = [*self._rows, *(row | within for row in tail)][-self._shown :]
        return self._rows

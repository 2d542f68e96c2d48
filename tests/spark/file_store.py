"""Values in files, with a header that commits or is forgotten as in Spark's state store."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.cell_store import FileValues


class TransactionalHeader:
    """Stands for Spark's ``ValueState``."""

    def __init__(self) -> None:
        self.kept: tuple[str] | None = None
        self.now: tuple[str] | None = None

    def get(self) -> tuple[str] | None:
        return self.now

    def update(self, value: tuple[str]) -> None:
        self.now = value


class FileStore(FileValues):
    """Files of failed attempts stay behind, as they do in life."""

    def __init__(self, folder: Path) -> None:
        self.text = TransactionalHeader()
        self.folder = folder
        super().__init__(self.text, folder)  # type: ignore[arg-type]

    def commit(self) -> None:
        self.text.kept = self.text.now

    def abort(self) -> None:
        self.text.now = self.text.kept

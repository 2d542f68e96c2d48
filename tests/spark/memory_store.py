"""A state store in memory that commits or forgets, as Spark's does with each attempt of a task."""

from __future__ import annotations


class MemoryStore:
    """The state of one cell; changes count after ``commit()`` and are gone after ``abort()``."""

    def __init__(self) -> None:
        self._kept: tuple[str | None, dict[int, bytes]] = (None, {})
        self.abort()

    def commit(self) -> None:
        self._kept = (self._header, dict(self.values))

    def abort(self) -> None:
        self._header, self.values = self._kept[0], dict(self._kept[1])

    def header(self) -> str | None:
        return self._header

    def put_header(self, text: str) -> None:
        self._header = text

    def value(self, number: int) -> bytes:
        return self.values[number]

    def put_value(self, number: int, value: bytes) -> None:
        assert number not in self.values
        self.values[number] = value

    def remove_value(self, number: int) -> None:
        del self.values[number]

"""A state store in memory that commits or forgets, as Spark's does with each attempt of a task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class MemoryStore:
    """The state of one cell; changes count after ``commit()`` and are gone after ``abort()``."""

    place = "memory"

    def __init__(self) -> None:
        self._kept: tuple[str | None, dict[str, bytes]] = (None, {})
        self.abort()

    def commit(self) -> None:
        self._kept = (self._header, dict(self.values))

    def abort(self) -> None:
        self._header, self.values = self._kept[0], dict(self._kept[1])

    def header(self) -> str | None:
        return self._header

    def put_header(self, text: str) -> None:
        self._header = text

    def read(self, name: str) -> bytes:
        return self.values[name]

    def write(self, name: str, parts: Sequence[bytes | memoryview]) -> None:
        assert name not in self.values
        self.values[name] = b"".join(parts)

    def let_go(self, names: Iterable[str]) -> None:
        for name in names:
            del self.values[name]

    def tidy(self, kept: Iterable[str]) -> None:
        assert set(kept) == set(self.values)

"""A state store in memory: every commit is a version, and an attempt works on a copy of one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class MemoryStore:
    """The state of one cell; changes count after ``commit()`` and are gone after ``abort()``."""

    def __init__(self, kept: tuple[str | None, dict[str, bytes]] = (None, {})) -> None:
        self._kept = kept
        self.abort()

    def commit(self) -> None:
        self._kept = (self._header, dict(self.values))

    def abort(self) -> None:
        self._header, self.values = self._kept[0], dict(self._kept[1])

    def copy(self) -> MemoryStore:
        """Another store with what is committed in this one."""
        return MemoryStore((self._kept[0], dict(self._kept[1])))

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

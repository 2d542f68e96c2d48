"""Results that wait: until they die (DSTREAM), or to be shown again (RSTREAM).

They are held as composites in chunks, each with the earliest death in it, so that a push looks
only at chunks in which somebody has died. Chunks of like size are merged, as in a binary counter.
Nothing changes until :meth:`HeldResults.commit`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.engine.state.composites import Composites, concatenate, none_of

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Chunk:
    results: Composites
    earliest: int

    @classmethod
    def of(cls, results: Composites) -> _Chunk:
        return cls(results, int(results.deaths.min()))


class HeldResults:
    """Living results, and those staged by the push that is under way."""

    def __init__(self, streams: tuple[str, ...]) -> None:
        self._streams = streams
        self._chunks: list[_Chunk] = []
        self._staged: list[_Chunk] = []

    def __len__(self) -> int:
        return sum(len(chunk.results) for chunk in self._chunks)

    @property
    def nbytes(self) -> int:
        return 8 * (2 + len(self._streams)) * len(self)

    def begin(self, new: Composites, shorten: Callable[[Composites], None] | None) -> None:
        """Stage ``new``; ``shorten`` brings deaths down to what is known by now."""
        chunks = list(self._chunks)
        if len(new):
            chunks.append(_Chunk.of(new))
        if shorten is not None:
            refreshed = []
            for chunk in chunks:
                results = Composites(
                    chunk.results.ids, chunk.results.births, chunk.results.deaths.copy()
                )
                shorten(results)
                refreshed.append(_Chunk.of(results))
            chunks = refreshed
        while len(chunks) > 1 and len(chunks[-2].results) <= 2 * len(chunks[-1].results):
            chunks[-2:] = [_Chunk.of(concatenate([chunks[-2].results, chunks[-1].results]))]
        self._staged = chunks

    def take_dead(self, now: int) -> Composites:
        """Remove, among the staged, the results whose death is before ``now``, and return them."""
        gone: list[Composites] = []
        staying: list[_Chunk] = []
        for chunk in self._staged:
            if chunk.earliest >= now:
                staying.append(chunk)
                continue
            dead = chunk.results.deaths < now
            gone.append(chunk.results.pick(np.flatnonzero(dead)))
            if not dead.all():
                staying.append(_Chunk.of(chunk.results.pick(np.flatnonzero(~dead))))
        self._staged = staying
        return concatenate(gone) if gone else none_of(self._streams)

    def all(self) -> Composites:
        """All staged results."""
        if not self._staged:
            return none_of(self._streams)
        return concatenate([chunk.results for chunk in self._staged])

    def commit(self) -> None:
        self._chunks, self._staged = self._staged, []

    def rollback(self) -> None:
        self._staged = []

    def renumber(self, alias: str, mapping: Int64s, first: int) -> None:
        """Leaf row ``r`` of ``alias`` is now ``mapping[r - first]``."""
        if alias not in self._streams:
            return
        self._chunks = [
            _Chunk(
                Composites(
                    {
                        **chunk.results.ids,
                        alias: mapping[chunk.results.ids[alias] - first],
                    },
                    chunk.results.births,
                    chunk.results.deaths,
                ),
                chunk.earliest,
            )
            for chunk in self._chunks
        ]

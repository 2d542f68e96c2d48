"""Whether predicates hold a join together.

Streams are linked by each predicate that reads two or more of them, and by CROSS JOIN. If they fall
into several parts the query is a cross product, which is nearly always a forgotten predicate: it is
refused unless asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def parts(streams: Sequence[str], links: Iterable[Iterable[str]]) -> list[list[str]]:
    """The connected parts of ``streams``, each in the order of FROM, as are the parts."""
    leader = {stream: stream for stream in streams}

    def find(stream: str) -> str:
        while leader[stream] != stream:
            leader[stream] = leader[leader[stream]]
            stream = leader[stream]
        return stream

    for link in links:
        first, *others = link
        for other in others:
            leader[find(other)] = find(first)
    found: dict[str, list[str]] = {}
    for stream in streams:
        found.setdefault(find(stream), []).append(stream)
    return list(found.values())

"""An auction house as three streams, after the Nexmark benchmark: people, auctions and bids.

Of 50 events one is a person who registers, three are auctions that open and 46 are bids. Bids
prefer young auctions, and bidders are mostly people who came lately. Every event arrives a little
after it happened; one in some thousands takes so long that it comes too late.

Time is event time: a step makes the events of the next second, whatever the clock on the wall says.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

PERSONS = pa.schema(
    [("id", pa.int64()), ("name", pa.string()), ("city", pa.string()), ("ts", pa.timestamp("ms"))]
)
AUCTIONS = pa.schema(
    [
        ("id", pa.int64()),
        ("item", pa.string()),
        ("reserve", pa.int64()),
        ("ts", pa.timestamp("ms")),
    ]
)
BIDS = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("ts", pa.timestamp("ms")),
    ]
)
SCHEMAS = {"persons": PERSONS, "auctions": AUCTIONS, "bids": BIDS}

QUERY = """\
SELECT bids.ts, persons.name, persons.city,
       auctions.item, bids.price
FROM bids     [NOW],
     auctions [RANGE 1 MINUTE],
     persons  [RANGE 2 MINUTES]
WHERE bids.auction = auctions.id
  AND bids.bidder = persons.id
  AND bids.price >= auctions.reserve"""
ABOUT = "bids by newcomers that meet the reserve of a fresh auction"

LATENESS = "3 SECONDS"

_START = np.datetime64("2025-06-01T12:00:00", "ms").astype(np.int64)
_PER_SECOND = {"persons": 200, "auctions": 600, "bids": 9_200}
_USUAL_DELAY = 250.0
_SLOW = 1 / 4_000
_SLOW_DELAY = (3_500, 9_000)


def _words(text: str) -> NDArray[Any]:
    return np.array(text.split())


_FIRST = _words("Ada Alan Barbara Donald Edsger Grace Jim Leslie Lynn Niklaus Radia Tim")
_LAST = _words("Abel Bose Curie Darwin Euler Fermi Gauss Hopper Ito Kovač Lamarr Noether")
_CITIES = _words("Aarhus Bergen Graz Kyoto Lyon Nairobi Oslo Porto Quito Riga Turin Utrecht")
_ADJECTIVES = _words("brass carved early gilded odd painted rare rusty silver tiny")
_THINGS = _words("astrolabe atlas clock globe kettle lantern organ radio sextant teapot")

Columns = dict[str, NDArray[Any]]


class AuctionHouse:
    """Makes the micro-batches, always the same ones for a seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._now = int(_START)
        self._next_id = {"persons": 1_000, "auctions": 1_000}
        self._travelling: dict[str, Columns] = {}
        self._factor = 1

    def step(self, factor: int = 1) -> dict[str, pa.Table]:
        """What arrives in the next second of event time, ``factor`` times as much as usual."""
        begin, self._now = self._now, self._now + 1_000
        self._factor = factor
        made = {
            "persons": self._persons(begin),
            "auctions": self._auctions(begin),
            "bids": self._bids(begin),
        }
        return {name: self._arrived(name, columns) for name, columns in made.items()}

    def _times(self, stream: str, begin: int) -> Columns:
        count = int(self._random.poisson(self._factor * _PER_SECOND[stream]))
        times = begin + np.sort(self._random.integers(0, 1_000, count))
        delays = self._random.exponential(_USUAL_DELAY, count)
        slow = self._random.random(count) < _SLOW
        delays[slow] = self._random.integers(*_SLOW_DELAY, int(slow.sum()))
        return {"ts": times, "arrives": times + np.minimum(delays, 20_000).astype(np.int64)}

    def _ids(self, stream: str, count: int) -> NDArray[np.int64]:
        first = self._next_id[stream]
        self._next_id[stream] += count
        return np.arange(first, first + count)

    def _persons(self, begin: int) -> Columns:
        times = self._times("persons", begin)
        count = len(times["ts"])
        names = np.char.add(np.char.add(self._some(_FIRST, count), " "), self._some(_LAST, count))
        return {
            "id": self._ids("persons", count),
            "name": names,
            "city": self._some(_CITIES, count),
            **times,
        }

    def _auctions(self, begin: int) -> Columns:
        times = self._times("auctions", begin)
        count = len(times["ts"])
        items = np.char.add(
            np.char.add(self._some(_ADJECTIVES, count), " "), self._some(_THINGS, count)
        )
        reserve = 50 + 10 * self._random.integers(0, 40, count)
        return {"id": self._ids("auctions", count), "item": items, "reserve": reserve, **times}

    def _bids(self, begin: int) -> Columns:
        times = self._times("bids", begin)
        count = len(times["ts"])
        age = self._random.exponential(40 * _PER_SECOND["auctions"], count).astype(np.int64)
        since = self._random.exponential(120 * _PER_SECOND["persons"], count).astype(np.int64)
        return {
            "auction": np.maximum(self._next_id["auctions"] - 1 - age, 0),
            "bidder": np.maximum(self._next_id["persons"] - 1 - since, 0),
            "price": self._random.lognormal(5, 0.7, count).astype(np.int64),
            **times,
        }

    def _some(self, words: NDArray[Any], count: int) -> NDArray[Any]:
        return words[self._random.integers(0, len(words), count)]

    def _arrived(self, stream: str, new: Columns) -> pa.Table:
        """Send off ``new``, and hand over what is there by now, in the order of arrival."""
        before = self._travelling.get(stream)
        if before is not None:
            new = {name: np.concatenate([before[name], new[name]]) for name in new}
        order = np.argsort(new["arrives"], kind="stable")
        there = int(np.searchsorted(new["arrives"][order], self._now))
        self._travelling[stream] = {name: each[order[there:]] for name, each in new.items()}
        schema = SCHEMAS[stream]
        return pa.table(
            [pa.array(new[field.name][order[:there]]).cast(field.type) for field in schema],
            schema=schema,
        )

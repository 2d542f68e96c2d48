"""The search for shares against a twin that tries every combination."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest

import penstock
from penstock.cells.placement import place
from penstock.cells.shares import MOST_CUT, best_shares, replication


def every_share(count: int, cells: int, cut: int = MOST_CUT) -> Iterator[tuple[int, ...]]:
    if count == 0:
        yield ()
        return
    for share in range(1, (cells if cut else 1) + 1):
        for rest in every_share(count - 1, cells // share, cut if share == 1 else cut - 1):
            yield (share, *rest)


def tried(
    owners: Sequence[frozenset[str]], rates: Mapping[str, float], cells: int
) -> tuple[int, ...]:
    """The first of all shares with the least load, then tuples sent, then the most cells."""

    def cost(shares: tuple[int, ...]) -> tuple[float, float, int]:
        sent = sum(rate * replication(alias, owners, shares) for alias, rate in rates.items())
        return round(sent / math.prod(shares), 9), round(sent, 9), -math.prod(shares)

    return min(every_share(len(owners), cells), key=cost)


@pytest.mark.parametrize("block", range(5))
def test_the_same_shares_as_by_trying_all(block: int) -> None:
    chance = random.Random(block)
    for _ in range(60):
        streams = "ABCDE"[: chance.randint(2, 5)]
        owners = [
            frozenset(chance.sample(streams, chance.randint(1, len(streams))))
            for _ in range(chance.randint(1, 5))
        ]
        owners += [frozenset(each) for each in streams if chance.random() < 0.6]
        rates = {each: chance.choice([0.0, 1.0, 1.0, 10.0, 333.3]) for each in streams}
        rates["A"] = 1.0
        cells = chance.choice([1, 2, 3, 7, 16, 30])
        found = best_shares(owners, rates, cells)
        assert found == tried(owners, rates, cells), (owners, rates, cells)


def test_a_chain_of_twenty_streams_on_a_thousand_cells() -> None:
    """Some 10^9 combinations: only found if most are not tried one by one."""
    streams = [f"S{number}" for number in range(20)]
    owners = [frozenset(pair) for pair in pairwise(streams)]
    owners += [frozenset({each}) for each in streams]
    shares = best_shares(owners, dict.fromkeys(streams, 1.0), 1000)
    assert math.prod(shares) <= 1000
    assert all(share == 1 for share in shares[19:])
    assert sum(share > 1 for share in shares) == MOST_CUT


def test_rates_of_an_empty_sample_are_no_rates() -> None:
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
    query = penstock.parse(
        "SELECT A.id AS a FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.x < B.x",
        schemas={"A": schema, "B": schema},
    )
    assert place(query, 16, {"A": 0.0, "B": 0.0}) == place(query, 16)

"""MJoin ordering: in which order the new rows of each input of a join visit the other inputs.

Starting from input X, after the inputs of S have been visited, ω_X · |S_S| partial results pass per
second, where ω_X = Σ 1/Wᵢ over the streams of X (:mod:`penstock.planning.cardinality`). A step from
S to Y costs a look for each of them (or a comparison with each row of Y, where no equality links
the two) and C_j for each match. So the cheapest order from X costs ω_X · h({X}) with

    h(S) = min over Y of  |S_S| · look(S, Y) + |S_{S∪Y}| · C_j + h(S ∪ {Y}),      h(everything) = 0.

h does not depend on X: one dynamic program over the subsets of k inputs, k · 2ᵏ steps, orders all
of them at once, exactly. The papers order each input by itself and greedily.

Beyond :data:`EXACT` inputs, greedily: next comes the input with the smallest rank
(f − 1) / (look + f · C_j), where f is its matches per partial result. With equal looks that is the
smallest f, the rule of the literature; with independent inputs it is optimal. All inputs are
ordered side by side, in k steps on k × k matrices.

A linked input comes before one that no predicate links, unless the block welcomes cross products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.planning.bits import bits_of
from penstock.planning.block import Block, ProbeOrders
from penstock.planning.cardinality import ABSENT, Bools, Floats

EXACT = 8
"""Inputs up to which orders are exact."""

_MOST_LOG = 690.0
"""exp of more is near the end of floats; costs this large are all the same."""


def probe_orders(block: Block, parts: tuple[int, ...]) -> ProbeOrders:
    """The probe orders of a join of ``parts``."""
    found = block.orders.get(parts)
    if found is None:
        if len(parts) == 2:
            found = _pair(block, *parts)
        else:
            found = _exact(block, parts) if len(parts) <= EXACT else _greedy(block, parts)
        block.orders[parts] = found
    return found


def _pair(block: Block, left: int, right: int) -> ProbeOrders:
    """A binary join: each input looks into the other."""
    cardinality, costs = block.cardinality, block.costs
    cpu = cardinality.rate(left | right) * block.share_made(left | right) * costs.join
    for mine, other in ((left, right), (right, left)):
        cpu += cardinality.rate(mine) * block.share_made(mine) * block.look(mine, other)
    return ProbeOrders(cpu, ((1,), (0,)))


def _exact(block: Block, parts: tuple[int, ...]) -> ProbeOrders:
    count = len(parts)
    everyone = (1 << count) - 1
    size, costs = block.cardinality.size, block.costs
    hashed = [0] * count
    linked = [0] * count
    for j, part in enumerate(parts):
        by_hash, by_any = block.neighbours(part)
        for i, other in enumerate(parts):
            if i != j:
                hashed[j] |= bool(by_hash & other) << i
                linked[j] |= bool(by_any & other) << i
    if block.nested_loops:
        hashed = [0] * count
    scans = [size(part) * costs.compare for part in parts]
    union = [0] * (everyone + 1)
    for done in range(1, everyone + 1):
        low = done & -done
        union[done] = union[done ^ low] | parts[low.bit_length() - 1]
    sizes = _sizes(block, parts, union)
    last_join = sizes[everyone] * costs.join * block.share_made(union[everyone])
    best = [0.0] * (everyone + 1)
    then = [0] * (everyone + 1)
    for done in range(everyone - 1, 0, -1):
        here, least, chosen = sizes[done], math.inf, -1
        candidates = list(bits_of(everyone & ~done))
        if not block.cross_products:
            near = [i for i in candidates if linked[i] & done]
            if block.wide_links:
                near = [i for i in candidates if block.is_linked(union[done], parts[i])]
            candidates = near or candidates
        for i in candidates:
            after = done | 1 << i
            if block.conditions:
                look = block.look(union[done], parts[i])
            else:
                look = costs.probe if hashed[i] & done else scans[i]
            cost = here * look + best[after]
            cost += last_join if after == everyone else sizes[after] * costs.join
            if cost < least:
                least, chosen = cost, i
        best[done], then[done] = least, chosen
    cpu = 0.0
    orders = []
    for i, part in enumerate(parts):
        order = []
        done = 1 << i
        while done != everyone:
            order.append(then[done])
            done |= 1 << then[done]
        orders.append(tuple(order))
        spent = best[1 << i] - _saved(block, part, parts[order[0]])
        cpu += block.cardinality.turnover(part) * spent
    return ProbeOrders(cpu, tuple(orders))


def _sizes(block: Block, parts: tuple[int, ...], union: list[int]) -> list[float]:
    """|S| of every union of inputs."""
    cardinality = block.cardinality
    count = len(parts)
    if count <= 4 or not cardinality.is_pairwise:
        return [0.0, *(cardinality.size(mask) for mask in union[1:])]
    # Factors between two inputs are enough, and there are far fewer of them than unions.
    alone = [cardinality.log_size(part) for part in parts]
    cross = [
        [cardinality.log_size(parts[i] | parts[j]) - alone[i] - alone[j] for j in range(i)]
        for i in range(count)
    ]
    logs = np.zeros(1)
    for top in range(count):
        with_those_below = np.full(1, alone[top])
        for factor in cross[top]:
            with_those_below = np.concatenate([with_those_below, with_those_below + factor])
        logs = np.concatenate([logs, logs + with_those_below])
    sizes: list[float] = np.exp(np.minimum(logs, _MOST_LOG)).tolist()
    sizes[0] = 0.0
    return sizes


def _saved(block: Block, part: int, first: int) -> float:
    """The first looks of those new rows that feedback does not let come into being."""
    made = block.share_made(part)
    if made == 1.0:
        return 0.0
    return (1 - made) * block.cardinality.size(part) * block.look(part, first)


def _greedy(block: Block, parts: tuple[int, ...]) -> ProbeOrders:
    """Row x of every matrix is the walk that starts from input x."""
    cardinality, costs = block.cardinality, block.costs
    count = len(parts)
    wide = cardinality.count > 62
    masked = np.array(parts, dtype=object if wide else np.int64)[:, None]
    member = (masked >> np.arange(cardinality.count) & 1).astype(np.bool_)
    inside = member.astype(float)
    cross = inside @ cardinality.pairs @ inside.T
    np.fill_diagonal(cross, 0.0)
    log_size = np.array([math.log(max(cardinality.size(mask), 1e-300)) for mask in parts])
    shares = cardinality.classes
    top = np.where(member[None], shares[:, None, :], ABSENT).max(axis=2)
    hashed = inside @ block.hash_matrix @ inside.T > 0
    linked = inside @ block.link_matrix @ inside.T > 0
    if block.nested_loops:
        hashed[:] = False
    scans = np.exp(np.minimum(log_size, _MOST_LOG)) * costs.compare

    # With equalities alone, all looks cost the same, and the rank rises with the matches.
    plain = (
        not block.cross_products
        and bool((hashed == linked).all())
        and block.is_connected(sum(parts))
        and not block.conditions
    )

    rows = np.arange(count)
    visited = np.eye(count, dtype=np.bool_)
    weight, by_hash, by_any = cross.copy(), hashed.copy(), linked.copy()
    reached = top.T.copy()
    logs = log_size.copy()
    masks = list(parts)
    total = np.zeros(count)
    orders = np.empty((count, count - 1), np.int64)
    here = np.exp(np.minimum(logs, _MOST_LOG))
    for step in range(count - 1):
        fan = log_size + weight
        for number in range(len(shares)):
            both = np.minimum(reached[:, number, None], top[number])
            fan += np.where(both == ABSENT, 0.0, both)
        if plain:
            chosen = np.where(visited | ~by_hash, np.inf, fan).argmin(axis=1)
            look: Floats | float = costs.probe
        else:
            prices = np.where(by_hash, costs.probe, scans)
            if block.conditions:
                prices = np.array([[block.look(done, part) for part in parts] for done in masks])
            chosen = _least_rank(block, fan, prices, ~visited, by_any)
            look = prices[rows, chosen]
        orders[:, step] = chosen
        logs = logs + fan[rows, chosen]
        visited[rows, chosen] = True
        weight += cross[chosen]
        by_hash |= hashed[chosen]
        by_any |= linked[chosen]
        reached = np.maximum(reached, top.T[chosen])
        made = logs
        if cardinality.is_adjusted or block.conditions:
            masks = [mask | parts[c] for mask, c in zip(masks, chosen, strict=True)]
        if cardinality.is_adjusted:
            made = logs + np.array(
                [cardinality.adjustment(mask) - _inner(block, parts, mask) for mask in masks]
            )
        now = np.exp(np.minimum(made, _MOST_LOG))
        total += here * look + now * costs.join
        here = now
    total -= here * costs.join * (1 - block.share_made(sum(parts)))
    turnover = np.array([cardinality.turnover(mask) for mask in parts])
    if block.demand:
        for i, mask in enumerate(parts):
            total[i] -= _saved(block, mask, parts[orders[i][0]])
    return ProbeOrders(float(turnover @ total), tuple(map(tuple, orders.tolist())))


def _least_rank(
    block: Block, fan: Floats, looks: Floats, left: Bools, linked: Bools
) -> NDArray[np.int64]:
    """The input to visit next, in each row."""
    matches = np.exp(np.minimum(fan, _MOST_LOG))
    if not block.cross_products:
        near: Bools = left & linked
        left = np.where(near.any(axis=1, keepdims=True), near, left)
    rank = (matches - 1) / np.maximum(looks + matches * block.costs.join, 1e-30)
    least: NDArray[np.int64] = np.where(left, rank, np.inf).argmin(axis=1)
    return least


def _inner(block: Block, parts: Sequence[int], mask: int) -> float:
    """The adjustments that the sizes of the inputs inside ``mask`` have in them already."""
    return sum(block.cardinality.adjustment(part) for part in parts if part & mask)

"""The shape of a jtree while it is being planned: who joins with whom, without probe orders.

Probe orders follow from a shape (:mod:`penstock.planning.probe_orders`), so planners move shapes
around and only what they return becomes a :class:`~penstock.plan.plan.Plan`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A stream (no inputs) or a join of two or more shapes, ordered by their first stream."""

    mask: int
    inputs: tuple[Shape, ...] = ()

    @property
    def parts(self) -> tuple[int, ...]:
        """The masks of the inputs."""
        return tuple(each.mask for each in self.inputs)


def leaf(stream: int) -> Shape:
    return Shape(1 << stream)


def join(inputs: Iterable[Shape]) -> Shape:
    """The join of ``inputs``; of a single one, that one."""
    ordered = sorted(inputs, key=lambda shape: shape.mask & -shape.mask)
    if len(ordered) == 1:
        return ordered[0]
    mask = 0
    for each in ordered:
        mask |= each.mask
    return Shape(mask, tuple(ordered))


def joins_of(shape: Shape) -> Iterator[Shape]:
    """The joins of ``shape``, children first."""
    for each in shape.inputs:
        yield from joins_of(each)
    if shape.inputs:
        yield shape


def replace(shape: Shape, mask: int, by: Shape) -> Shape:
    """``shape`` with the part over ``mask`` replaced by another shape over the same streams."""
    if shape.mask == mask:
        return by
    return join(
        replace(each, mask, by) if each.mask & mask == mask else each for each in shape.inputs
    )


def merge(shape: Shape, mask: int) -> Shape:
    """``shape`` without the stored join over ``mask``: its inputs become inputs of its consumer."""
    inputs: list[Shape] = []
    for each in shape.inputs:
        if each.mask == mask:
            inputs.extend(each.inputs)
        else:
            inputs.append(merge(each, mask) if each.mask & mask == mask else each)
    return join(inputs)


def mjoin(mask: int) -> Shape:
    """One mjoin over the streams of ``mask``."""
    return join(leaf(i) for i in range(mask.bit_length()) if mask >> i & 1)


def frontier(shape: Shape, most: int) -> list[Shape]:
    """Parts that make up ``shape``, as many as can be had up to ``most``: the widest are opened."""
    parts = list(shape.inputs)
    while True:
        openable = [p for p in parts if p.inputs and len(parts) - 1 + len(p.inputs) <= most]
        if not openable:
            return parts
        widest = max(openable, key=lambda part: part.mask.bit_count())
        parts.remove(widest)
        parts.extend(widest.inputs)


def part_over(shape: Shape, mask: int) -> Shape | None:
    """The part of ``shape`` over exactly the streams of ``mask``, if there is one."""
    while shape.mask != mask:
        for each in shape.inputs:
            if each.mask & mask == mask:
                shape = each
                break
        else:
            return None
    return shape

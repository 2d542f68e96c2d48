"""Random plans in the plan notation, any nesting, with and without probe orders."""

from __future__ import annotations

import random
from collections.abc import Sequence


def random_plan(chance: random.Random, aliases: Sequence[str]) -> str:
    """A plan over ``aliases``: a binary tree, an mjoin, or any mixture of the two."""
    shape = chance.choice(["binary", "mjoin", "any", "any"])
    order = list(aliases)
    chance.shuffle(order)
    text, _ = _node(chance, order, shape)
    return text


def _node(chance: random.Random, aliases: list[str], shape: str) -> tuple[str, str]:
    """The text of a tree over ``aliases``, and its name in a probe order."""
    if len(aliases) == 1:
        return aliases[0], aliases[0]
    if shape == "mjoin":
        parts = len(aliases)
    elif shape == "binary":
        parts = 2
    else:
        parts = chance.randint(2, len(aliases))
    cuts = sorted(chance.sample(range(1, len(aliases)), parts - 1))
    groups = [aliases[a:b] for a, b in zip([0, *cuts], [*cuts, len(aliases)], strict=True)]
    children = [_node(chance, group, shape) for group in groups]
    inside = " ".join(text for text, _ in children)
    if chance.random() >= 0.6:
        inside += " |"
        for position, (_, name) in enumerate(children):
            others = [other for i, (_, other) in enumerate(children) if i != position]
            chance.shuffle(others)
            inside += f" {name}:{','.join(others)}"
    name = f"({' '.join(aliases)})"
    return f"({inside})", name

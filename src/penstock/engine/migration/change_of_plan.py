"""The strategies of a change of plan: what becomes of the running tree.

All of them give the same answers; they differ in when the work is done, and by whom.

- ``jisc``: the new tree starts at once, with what the old one had complete; what it lacks is made
  when somebody asks for it (:mod:`penstock.engine.completion.missing`).
- ``moving-state`` (Zhu, Rundensteiner and Heineman, SIGMOD 2004): the same, but everything is made
  before the next push, which waits for it.
- ``parallel-track`` (the same paper): old and new tree run side by side
  (:mod:`penstock.engine.migration.parallel_track`).
- ``auto``: moving state where its halt is short, else JISC
  (:mod:`penstock.engine.migration.strategy_choice`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.engine.migration.parallel_track import ParallelTracks, never_ends, since_now
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import OptionError
from penstock.plan.plan import Join, Node

AUTO = "auto"


def just_in_time(old: JoinTree, root: Node) -> JoinTree:
    """A tree for ``root`` in the place of ``old`` that completes on demand."""
    new = old.successor(root, old.known_states())
    new.completion.get_ready()
    new.inherit(old)
    old.dispose()
    return new


def moving_state(old: JoinTree, root: Node) -> JoinTree:
    """A tree for ``root`` in the place of ``old``, complete."""
    new = just_in_time(old, root)
    new.complete_all()
    return new


def parallel_track(old: JoinTree, root: Node) -> JoinTree:
    """A tree for ``root`` that leaves to ``old`` what has to do with rows of now."""
    new = old.successor(root, {}, since_now(old.leaves))
    new.complete_all()  # Joins of static relations alone, which both trees see whole.
    new.older = ParallelTracks(old)
    return new


def reroute(old: JoinTree, root: Node) -> JoinTree:
    """The same tree with other probe orders: for eddies, whose plan is always one mjoin."""
    assert isinstance(root, Join)
    old.reroute(root)
    return old


STRATEGIES: dict[str, Callable[[JoinTree, Node], JoinTree]] = {
    AUTO: just_in_time,  # What is missing is completed next, if it does not take long.
    "jisc": just_in_time,
    "moving-state": moving_state,
    "parallel-track": parallel_track,
}


def check_strategy(strategy: str, trees: Iterable[JoinTree]) -> None:
    """Raise :class:`OptionError` if ``trees`` cannot be changed like this."""
    if strategy not in STRATEGIES:
        raise OptionError(
            f"strategy={strategy!r} does not exist; choose from: "
            + ", ".join(map(repr, STRATEGIES))
        )
    if strategy == "parallel-track":
        for tree in trees:
            endless = never_ends(tree.leaves.values())
            if endless is not None:
                raise OptionError(
                    f"parallel-track runs the old plan until its tuples have died, and those of "
                    f"{endless} [UNBOUNDED] never do; choose 'jisc' or 'moving-state'"
                )

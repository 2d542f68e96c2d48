"""What an engine has done and what it holds: plain nested dictionaries for people and hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from penstock.engine.feedback.demand_sample import PAIRS_PER_FOUND, pairs_withheld
from penstock.engine.feedback.guard import DROPPED, RETURNED, SLEPT, TESTED, WOKEN
from penstock.engine.output.output import Output
from penstock.engine.push.intake import Batches
from penstock.engine.state.clock import START, Clock
from penstock.engine.tree.join_tree import JoinTree
from penstock.errors import CheckpointError
from penstock.plan.plan import write
from penstock.query.join_graph import JoinGraph

Metrics: TypeAlias = dict[str, Any]

COMPILED = "compiled"
"""The way of a push that was compiled, among the reasons why others were not."""


class Counters:
    """Counts since the start of the engine; late rows are where a person sees them."""

    def __init__(self, sources: tuple[str, ...]) -> None:
        self.pushes = 0
        self.seconds = 0.0
        self.results = 0
        self.rows = dict.fromkeys(sources, 0)
        self.late = dict.fromkeys(sources, 0)
        self.null_time = dict.fromkeys(sources, 0)
        self.ahead = dict.fromkeys(sources, 0)
        """Rows too far ahead of their arrival, by source."""
        self.filtered = dict.fromkeys(sources, 0)
        """Rows in no window: predicates on their stream or NULLs in keys keep them out."""
        self.shed = dict.fromkeys(sources, 0)
        """Rows that were not taken in for want of CPU."""
        self.ways: dict[str, int] = {}
        """Pushes by the way they were made: :data:`COMPILED`, or the reason why not."""

    def count(self, taken: Batches, results: int) -> None:
        """A push is done."""
        self.count_rows(taken.seen, results)
        self.count_set_aside(taken.late, taken.null_time)

    def count_set_aside(self, late: Mapping[str, int], null_time: Mapping[str, int]) -> None:
        """Rows of a push that were late or had no time."""
        for counts, new in ((self.late, late), (self.null_time, null_time)):
            for source, number in new.items():
                counts[source] += number

    def count_filtered(self, filtered: Mapping[str, int]) -> None:
        """Rows of a push that came into no window."""
        for source, number in filtered.items():
            self.filtered[source] += number

    def count_shed(self, left_out: Mapping[str, int]) -> None:
        """Rows of a push that were left at the door: they came, too."""
        for source, number in left_out.items():
            self.rows[source] += number
            self.shed[source] += number

    def note_way(self, way: str) -> None:
        """A push was made that way."""
        self.ways[way] = self.ways.get(way, 0) + 1

    def to_json(self) -> dict[str, Any]:
        """All counts by name, for a checkpoint."""
        return dict(vars(self))

    def load(self, counts: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` wrote."""
        for name, value in counts.items():
            own = getattr(self, name)
            are_named = not isinstance(own, dict) or name == "ways" or own.keys() == value.keys()
            if not isinstance(own, type(value)) or not are_named:
                raise CheckpointError(f"the checkpoint is damaged: {name} is {value!r}")
            setattr(self, name, value)

    def count_rows(self, seen: Mapping[str, int], results: int) -> None:
        """A push is done, and every row of it was on time."""
        self.pushes += 1
        self.results += results
        for source, number in seen.items():
            self.rows[source] += number


def measure(
    counters: Counters,
    trees: Sequence[JoinTree],
    output: Output,
    clock: Clock,
    graph: JoinGraph,
    values: int,
) -> Metrics:
    """The metrics of an engine, whose windows have so many bytes of ``values`` of keys.

    ``late``, ``null_time``, ``filtered`` and ``shed`` are totals; per source they are under
    ``sources``. Rows that are none of these are in a window of their source, or were until they
    died. ``state`` has the rows and bytes of every window and every stored join (and how much of a
    join's state is there after a change of plan: its ``completion``), ``joins`` what each join did.
    ``time_unit`` is that of instants since 1970 in UTC, None where event times are not timestamps.
    ``seconds`` is the time in pushes since the start; of windows and joins, since the plan runs.
    Where there is a budget or a freshness to keep, the engine has more to say under ``overload``.
    """
    states = [state for tree in trees for state in tree.states]
    interval = None if clock.watermark == START else clock.watermark
    return {
        "pushes": counters.pushes,
        "execution": execution_of(counters.ways),
        "seconds": counters.seconds,
        "rows": sum(counters.rows.values()),
        "results": counters.results,
        "late": sum(counters.late.values()),
        "null_time": sum(counters.null_time.values()),
        "ahead": sum(counters.ahead.values()),
        "filtered": sum(counters.filtered.values()),
        "shed": sum(counters.shed.values()),
        "watermark": None if graph.by_rows else interval,
        "now": None if clock.now == START else clock.now,
        "time_unit": graph.time_unit if graph.has_clock_times else None,
        "sources": {
            source: {
                "rows": counters.rows[source],
                "late": counters.late[source],
                "null_time": counters.null_time[source],
                "ahead": counters.ahead[source],
                "filtered": counters.filtered[source],
                "shed": counters.shed[source],
            }
            for source in counters.rows
        },
        "state": {
            "bytes": sum(tree.nbytes for tree in trees) + values + output.nbytes,
            "windows": {
                leaf.stream.alias: {
                    "source": leaf.stream.source,
                    "rows": len(leaf.rows),
                    "bytes": leaf.nbytes,
                    "on_disk": leaf.bytes_away,
                    "seconds": tree.stopwatch.seconds.get(leaf.streams, 0.0),
                }
                for tree in trees
                for leaf in tree.leaves.values()
            },
            "joins": {
                str(state.streams): {
                    "rows": len(state.rows),
                    "bytes": state.nbytes,
                    "on_disk": state.rows.bytes_away,
                    "completion": 1.0 if state.missing is None else state.missing.completion,
                }
                for state in states
            },
            "values": {"bytes": values},
            "output": {"bytes": output.nbytes},
        },
        "joins": [
            {
                "plan": write(operator.node),
                "streams": str(operator.node.streams),
                "made": operator.made,
                "seconds": tree.stopwatch.seconds.get(operator.streams, 0.0),
                "probes": sum(s.probes for steps in operator.steps for _, s in steps),
                "probes_of": {
                    str(each.streams): sum(s.probes for _, s in steps)
                    for each, steps in zip(operator.node.inputs, operator.steps, strict=True)
                },
                "matches": sum(s.matches for steps in operator.steps for _, s in steps),
            }
            for tree in trees
            for operator in tree.operators
        ],
        **({"subtractions": output.subtractions} if graph.minus else {}),
        "feedback": feedback_of(trees),
        "overload": {"policy": "exact", "short": False, "since": None},
    }


def execution_of(ways: Mapping[str, int]) -> Metrics:
    """How many pushes were ``compiled``, how many went the ``reference`` way, and for which
    ``reasons``."""
    reasons = {why: count for why, count in ways.items() if why != COMPILED}
    return {
        "compiled": ways.get(COMPILED, 0),
        "reference": sum(reasons.values()),
        "reasons": reasons,
    }


def feedback_of(trees: Sequence[JoinTree]) -> Metrics:
    """What demand feedback did: sums, and each guard.

    ``made`` are partial results that were stored, ``avoided`` those that rows asleep would have
    made: as many as the rows that were let in did, on average, or if there is none, as those who
    wait now would find and be found by. ``resumed`` rows were woken, ``returned`` ones went back to
    sleep when their partner had died (half of what they make counts as avoided), ``dropped`` ones
    had no partner in a static relation and never will. ``surpassed`` are rows, by alias, that went
    since a later one says the same to MIN and MAX: only for such queries.
    """
    made = sum(operator.made for tree in trees for operator in tree.operators if operator.state)
    guards = []
    avoided = 0.0
    for tree in trees:
        for edge, consumer, position in tree.inputs():
            pairs = consumer.pairs_of(position) / edge.admitted if edge.admitted else 0.0
            for guard in edge.guards:
                idle = guard.count(SLEPT) + guard.count(DROPPED) - guard.count(WOKEN)
                idle = max(0, idle + guard.count(RETURNED) // 2)
                if idle and not edge.admitted:
                    _, step = consumer.steps[position][0]
                    pairs = PAIRS_PER_FOUND * (pairs_withheld(guard, step, tree.leaves) or 0.0)
                avoided += idle * pairs
                guards.append(
                    {
                        "input": str(guard.streams),
                        "waits_for": str(guard.opposite.streams),
                        "on": guard.is_on,
                        "tested": guard.count(TESTED),
                        "slept": guard.count(SLEPT),
                        "resumed": guard.count(WOKEN),
                        "returned": guard.count(RETURNED),
                        "dropped": guard.count(DROPPED),
                        "avoided": round(idle * pairs),
                        "asleep": guard.waiting.asleep,
                        "bytes": guard.nbytes if guard.is_on else 0,
                    }
                )
    return {
        "made": made,
        "avoided": round(avoided),
        "resumed": sum(each["resumed"] for each in guards),
        "returned": sum(each["returned"] for each in guards),
        "dropped": sum(each["dropped"] for each in guards),
        "asleep": sum(each["asleep"] for each in guards),
        "guards": guards,
        "surpassed": {},
    }

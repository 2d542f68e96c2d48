"""The peers: how each is run, in which variants, and what to know when reading its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import OptionError

HERE = Path(__file__).parent
HAND_OVER = HERE / "scripts" / "hand_over.py"
"""What all scripts share."""
ORDERS = ("written", "better")


@dataclass(frozen=True)
class Peer:
    """One engine."""

    name: str
    title: str
    script: Path
    variants: tuple[str, ...]
    """``written`` and ``better`` are orders of joins; other names mean something to the script."""
    requirements: Path | None
    """Packages of its environment; None if it runs in the environment of this process."""
    files: str = "csv"
    """A format of :mod:`penstock.cli.bench.peers.input_files`."""
    kind: str = "streaming"
    """``penstock``, ``streaming`` or ``offline``."""
    java: bool = False
    note: str = ""


def _peer(name: str, title: str, variants: Sequence[str], **values: object) -> Peer:
    own = values.pop("own", False)
    script = values.pop("script", name)
    return Peer(
        name=name,
        title=title,
        script=HERE / "scripts" / f"run_{script}.py",
        variants=tuple(variants),
        requirements=None if own else HERE / "requirements" / f"{name}.txt",
        **values,  # type: ignore[arg-type]
    )


PEERS = {
    peer.name: peer
    for peer in (
        _peer("duckdb", "DuckDB, offline", ("planned",), kind="offline"),
        _peer("polars", "Polars, offline", ("better",), kind="offline"),
        _peer("penstock", "Penstock", ORDERS, own=True, kind="penstock"),
        _peer(
            "datafusion",
            "DataFusion",
            ORDERS,
            note="no watermark, no checkpoint; joins above the first never drop their state",
        ),
        _peer("pathway", "Pathway", ORDERS, files="csv-tuple-id"),
        _peer("bytewax", "Bytewax", ORDERS, note="the join is written by hand, in Python"),
        _peer(
            "flink",
            "Flink",
            (*ORDERS, "multi-join"),
            files="csv-bare",
            java=True,
            note="multi-join never drops its state",
        ),
        _peer(
            "penstock-spark",
            "Penstock on Spark",
            ("written",),
            own=True,
            script="spark",
            files="parquet",
            kind="penstock",
        ),
        _peer("spark", "Spark", ORDERS, own=True, files="parquet"),
    )
}
REFERENCE = "duckdb"
"""Whose answer is taken for right."""


def chosen_peers(names: Sequence[str] | None) -> tuple[Peer, ...]:
    """The peers with these names; all if None."""
    for name in names or ():
        if name not in PEERS:
            raise OptionError(f"no peer {name!r}; choose from: {', '.join(PEERS)}")
    return tuple(peer for peer in PEERS.values() if names is None or peer.name in names)

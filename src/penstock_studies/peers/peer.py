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
    """A format of :mod:`penstock_studies.peers.input_files`."""
    kind: str = "streaming"
    """``penstock``, ``streaming`` or ``offline``."""
    java: bool = False
    note: str = ""


def _script(name: str) -> Path:
    return HERE / "scripts" / f"run_{name}.py"


def _pins(name: str) -> Path:
    return HERE / "requirements" / f"{name}.txt"


_OFFLINE = (
    Peer(
        "duckdb",
        "DuckDB, offline",
        _script("duckdb"),
        ("planned",),
        _pins("duckdb"),
        kind="offline",
    ),
    Peer(
        "polars",
        "Polars, offline",
        _script("polars"),
        ("better",),
        _pins("polars"),
        kind="offline",
    ),
)
_EMBEDDED = (
    Peer("penstock", "Penstock", _script("penstock"), ORDERS, None, kind="penstock"),
    Peer(
        "datafusion",
        "DataFusion",
        _script("datafusion"),
        ORDERS,
        _pins("datafusion"),
        note="no watermark, no checkpoint; joins above the first never drop their state",
    ),
    Peer(
        "pathway",
        "Pathway",
        _script("pathway"),
        ORDERS,
        _pins("pathway"),
        files="csv-tuple-id",
        note="all rows of a file are one mini-batch",
    ),
    Peer(
        "bytewax",
        "Bytewax",
        _script("bytewax"),
        ORDERS,
        _pins("bytewax"),
        note="the join is written by hand, in Python",
    ),
)
_ON_JAVA = (
    Peer(
        "flink",
        "Flink",
        _script("flink"),
        (*ORDERS, "multi-join"),
        _pins("flink"),
        files="csv-bare",
        java=True,
        note="multi-join never drops its state",
    ),
    Peer(
        "penstock-spark",
        "Penstock on Spark",
        _script("spark"),
        ("written",),
        None,
        files="parquet",
        kind="penstock",
    ),
    Peer("spark", "Spark", _script("spark"), ORDERS, None, files="parquet"),
)
PEERS = {peer.name: peer for peer in (*_OFFLINE, *_EMBEDDED, *_ON_JAVA)}
REFERENCE = "duckdb"
"""The peer whose answer is taken for right."""


def chosen_peers(names: Sequence[str] | None) -> tuple[Peer, ...]:
    """The peers with these names; all if None."""
    for name in names or ():
        if name not in PEERS:
            raise OptionError(f"no peer {name!r}; choose from: {', '.join(PEERS)}")
    return tuple(peer for peer in PEERS.values() if names is None or peer.name in names)

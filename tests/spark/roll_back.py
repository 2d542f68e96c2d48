"""A checkpoint of Spark's goes back to an earlier batch, as people do it."""

from __future__ import annotations

from pathlib import Path


def roll_back(checkpoint: Path, batch: int) -> None:
    """Delete the logs of batches after ``batch``, Hadoop's checksums beside them included."""
    for log in ("offsets", "commits"):
        for file in (checkpoint / log).iterdir():
            name = file.name.removeprefix(".").removesuffix(".crc")
            if name.isdecimal() and int(name) > batch:
                file.unlink()


def uncommit(checkpoint: Path, batch: int) -> None:
    """As if the driver had died when the sink had committed ``batch``, and Spark had not."""
    for name in (str(batch), f".{batch}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)

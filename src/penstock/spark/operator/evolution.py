"""A checkpoint that goes on with other cells, another lateness or a changed query.

Before the query starts, the headers of all cells are read from the state as of the last committed
batch, with Spark's own reader of state. If they are not those of the query as it is now, their
windows are laid out anew (:mod:`penstock.spark.state.seed`), and the seeds are written beside the
state, in the checkpoint folder. A cell whose last entry is the one that its seed replaces takes the
seed in its next batch, and has it in its state from then on; so a batch that is tried again takes
it again, and after a rollback to a batch before that, new seeds are made from what is there then.

Cells that are not used any more leave their last state behind. All cells of a query take part in
every batch, so those in use are the ones that have come furthest.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from penstock.spark.cells.cell import CellSettings
from penstock.spark.operator.cell_processor import VARIABLE
from penstock.spark.state.cell_history import laid_out, last_nonce
from penstock.spark.state.cell_store import unpacked
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_owner import last_batch
from penstock.spark.state.seed import Seed, seeds

_NAME = "penstock.seed"


@dataclass(frozen=True, slots=True)
class Seeds:
    """The files of seeds, named after ``digest``; ``before`` has, by cell, the last entry of the
    state that its seed replaces."""

    files: CheckpointFiles
    digest: str
    before: tuple[str | None, ...]

    def seed(self, cell: int, nonce: str | None) -> Seed | None:
        """The seed of ``cell`` if its last entry is ``nonce``."""
        if self.before[cell] != nonce:
            return None
        return Seed.from_bytes(self.files.read(self.name(cell)))

    def name(self, cell: int) -> str:
        """The file of the seed of ``cell``."""
        return f"{_NAME}-{self.digest}-{cell}"


def evolved(
    spark: SparkSession,
    checkpoint: str,
    settings: CellSettings,
    keys: Sequence[int],
    fingerprint: str,
) -> Seeds | None:
    """Seeds for the cells of ``settings``, None if the state is theirs or there is none."""
    files = CheckpointFiles.of(checkpoint, spark)
    last = last_batch(files)
    if last is None or last < 0:
        return None
    state = _state(spark, checkpoint)
    headers = _headers(state)
    if not headers:
        return None
    furthest = max(json.loads(text)["entries"][-1]["version"] for text in headers.values())
    in_use = {
        key: text
        for key, text in headers.items()
        if json.loads(text)["entries"][-1]["version"] == furthest
    }
    first = json.loads(next(iter(in_use.values())))
    if len(in_use) != first["cells"]:
        return None  # Something else is in this state, and the cells will say so.
    if first["fingerprint"] == fingerprint:
        return None
    values = _values(state, in_use)
    old = [laid_out(text, values[key].__getitem__) for key, text in in_use.items()]
    before = tuple(last_nonce(headers.get(key)) for key in keys)
    made = seeds(old, settings, before)
    digest = hashlib.sha256(json.dumps([fingerprint, *before]).encode()).hexdigest()[:16]
    found = Seeds(files, digest, before)
    for number, seed in enumerate(made):
        files.write(found.name(number), seed.to_bytes())
    warnings.warn(
        f"the windows of {checkpoint} are kept and laid out anew: {first['about']} before, "
        f"{settings.placement.cells} now",
        stacklevel=3,
    )
    return found


def _state(spark: SparkSession, checkpoint: str) -> DataFrame:
    frame = spark.read.format("statestore").option("stateVarName", VARIABLE).load(checkpoint)
    return frame.select(
        frame["key.cell"].alias("cell"),
        frame["user_map_key.name"].alias("name"),
        frame["user_map_key.part"].alias("part"),
        frame["user_map_value.bytes"].alias("bytes"),
        frame["user_map_value.plain"].alias("plain"),
    )


def _headers(state: DataFrame) -> dict[int, str]:
    found = state.where(sql.col("name") == "").collect()
    return {row.cell: unpacked(row.bytes, row.plain).decode() for row in found}


def _values(state: DataFrame, headers: dict[int, str]) -> dict[int, dict[str, bytes]]:
    """The deliveries of the cells in ``headers``, by key and name."""
    wanted = sql.col("cell").isin([*headers]) & sql.col("name").contains("-delivery-")
    pieces: dict[int, dict[str, list[bytes]]] = {key: {} for key in headers}
    for row in state.where(wanted).orderBy("cell", "name", "part").toLocalIterator():
        pieces[row.cell].setdefault(row.name, []).append(unpacked(row.bytes, row.plain))
    return {
        key: {name: b"".join(parts) for name, parts in each.items()} for key, each in pieces.items()
    }

"""A checkpoint that goes on with other cells, another lateness or a changed query.

Before the query starts, the headers of all cells are read from the state as of the last committed
batch, with Spark's own reader of state. If they are not those of the query as it is now, their
windows are laid out anew (:mod:`penstock.spark.state.seed`), and the seeds are written beside the
state, in the checkpoint folder. A cell whose last entry is the one that its seed replaces takes the
seed in its next batch, and has it in its state from then on; so a batch that is tried again takes
it again, and after a rollback to a batch before that, new seeds are made from what is there then.

*Several joins in one query* have a state each, and nobody tells a join which one is its own. So
seeds are made of every state that can be laid out for it, and a cell takes the one that replaces
its last entry, whose name nobody else has. Only cells that had no state before cannot be told
apart, so that more cells than before are refused there.

*Cells that are not used any more* are sent an empty row with every batch, and let go of their state
when they get it. All cells of a query take part in every batch, so those in use are the ones that
have come furthest.

*Seeds go* as soon as nobody can need them: a job removes them when its first batch is committed,
and whoever starts a query those that replace what is not in the state any more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from penstock.errors import CheckpointError, PenstockWarning
from penstock.spark.cells.cell import CellSettings
from penstock.spark.cells.cell_keys import cell_keys
from penstock.spark.operator.cell_processor import VARIABLE
from penstock.spark.state.cell_history import about, laid_out, last_nonce
from penstock.spark.state.cell_store import unpacked
from penstock.spark.state.checkpoint_files import CheckpointFiles
from penstock.spark.state.checkpoint_owner import last_batch
from penstock.spark.state.seed import ANEW, OldCell, Seed, seeds

_NAME = "penstock.seed"
_NEW = "new"
"""Stands in the name of a seed for a cell that has no state."""
_STATE = "state"


@dataclass(frozen=True, slots=True)
class SeedSet:
    """Files of seeds, named after ``digest``; ``before`` has, by cell, the last entry of the state
    that its seed replaces."""

    digest: str
    before: tuple[str | None, ...]

    def name(self, cell: int) -> str:
        """The file of the seed of ``cell``."""
        return f"{_NAME}-{self.digest}-{cell}-{self.before[cell] or _NEW}"


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds for every state that may be the one of a join."""

    files: CheckpointFiles
    sets: tuple[SeedSet, ...]

    def seed(self, cell: int, nonce: str | None) -> Seed | None:
        """The seed of ``cell`` if its last entry is ``nonce``."""
        for each in self.sets:
            if each.before[cell] == nonce:
                return Seed.from_bytes(self.files.read(each.name(cell)))
        return None


@dataclass(frozen=True, slots=True)
class Evolved:
    """What a query takes over from a checkpoint."""

    seeds: Seeds | None = None
    """Windows that were laid out anew, if they had to be."""
    retired: tuple[int, ...] = ()
    """Keys of cells that have state and are not used any more."""


@dataclass(frozen=True, slots=True)
class _Operator:
    """The state of one join: the headers of all its cells, by key."""

    state: DataFrame
    headers: dict[int, str]

    @property
    def in_use(self) -> dict[int, str]:
        """Headers of the cells that have come furthest."""
        versions = {key: _version(text) for key, text in self.headers.items()}
        furthest = max(versions.values())
        return {key: text for key, text in self.headers.items() if versions[key] == furthest}

    @property
    def is_whole(self) -> bool:
        """Whether all cells are there that belong together."""
        found = self.in_use
        return len(found) == int(json.loads(next(iter(found.values())))["cells"])

    @property
    def fingerprint(self) -> str:
        return str(json.loads(next(iter(self.in_use.values())))["fingerprint"])

    @property
    def about(self) -> str:
        return str(json.loads(next(iter(self.in_use.values())))["about"])


def evolved(
    spark: SparkSession,
    checkpoint: str,
    settings: CellSettings,
    keys: Sequence[int],
    fingerprint: str,
) -> Evolved:
    """What the cells of ``settings`` take over, nothing if the state is theirs or there is none."""
    files = CheckpointFiles.of(checkpoint, spark)
    last = last_batch(files)
    if last is None or last < 0:
        return Evolved()
    found = [each for each in _operators(spark, checkpoint, files) if each.is_whole]
    retired = tuple(sorted({key for each in found for key in each.headers} - {*keys}))
    _forget_passed(files, found)
    if not found or any(each.fingerprint == fingerprint for each in found):
        return Evolved(None, retired)  # What is in no way theirs is told by the cells.
    sets, told, reasons = [], [], []
    for each in found:
        try:
            made, rows = seeds(_laid_out(each), settings, _before(each, keys))
        except CheckpointError as reason:
            reasons.append(reason)
            continue
        sets.append(_written(files, made, fingerprint))
        kept = ", ".join(f"{count:,} rows of {source}" for source, count in rows.items())
        told.append(f"{each.about} before, {about(settings)} now; kept are {kept or 'no rows'}")
    if not sets:
        raise reasons[0]
    if len(sets) > 1 and any(None in each.before for each in sets):
        raise CheckpointError(
            "there are several joins in this query, and it cannot be told whose windows its new "
            f"cells are to get: start it with as many cells as before or fewer, or {ANEW}"
        )
    for line in told:
        warnings.warn(
            f"the windows of {checkpoint} are kept and laid out anew: {line}",
            PenstockWarning,
            stacklevel=3,
        )
    return Evolved(Seeds(files, tuple(sets)), retired)


def forget_seeds(files: CheckpointFiles) -> None:
    """Remove the seeds among ``files``: a batch has been committed since they were made."""
    with contextlib.suppress(OSError):
        for name in files.names("") or ():
            if name.startswith(_NAME):
                files.remove(name)


def _forget_passed(files: CheckpointFiles, operators: Sequence[_Operator]) -> None:
    """Remove seeds that replace nothing that is in the state."""
    with contextlib.suppress(OSError, ValueError):
        for name in files.names("") or ():
            if not name.startswith(_NAME):
                continue
            _, _, cell, before = name.split("-")
            key = cell_keys(int(cell) + 1)[-1]
            if before not in {last_nonce(each.headers.get(key)) or _NEW for each in operators}:
                files.remove(name)


def _written(files: CheckpointFiles, made: Sequence[Seed], fingerprint: str) -> SeedSet:
    """The seeds ``made`` as files."""
    before = tuple(seed.before for seed in made)
    digest = hashlib.sha256(json.dumps([fingerprint, *before]).encode()).hexdigest()[:16]
    found = SeedSet(digest, before)
    for number, seed in enumerate(made):
        files.write(found.name(number), seed.to_bytes())
    return found


def _before(operator: _Operator, keys: Sequence[int]) -> list[str | None]:
    return [last_nonce(operator.headers.get(key)) for key in keys]


def _version(header: str) -> int:
    return int(json.loads(header)["entries"][-1]["version"])


def _operators(spark: SparkSession, checkpoint: str, files: CheckpointFiles) -> list[_Operator]:
    """The states of joins in the checkpoint: there may be others, of Spark's own operators."""
    numbers = sorted(int(name) for name in files.names(_STATE) or () if name.isdecimal())
    found = []
    problem: AnalysisException | None = None
    for number in numbers or [0]:
        try:
            state = _state(spark, checkpoint, number)
            headers = _headers(state)
        except AnalysisException as error:  # It has no such variable, or not of this kind.
            problem = error
            continue
        if headers:
            found.append(_Operator(state, headers))
    if problem is not None and not found:
        raise CheckpointError(
            f"found state in {checkpoint} that is not of this version of Penstock: it belongs to "
            f"another query, or was written by an earlier version; {ANEW}"
        )
    return found


def _laid_out(operator: _Operator) -> list[OldCell]:
    values = _values(operator.state, operator.in_use)
    return [laid_out(text, values[key].__getitem__) for key, text in operator.in_use.items()]


def _state(spark: SparkSession, checkpoint: str, operator: int) -> DataFrame:
    _ = spark.streams  # With it comes the coordinator of state stores, which 4.2 looks for.
    reader = spark.read.format("statestore").option("stateVarName", VARIABLE)
    frame = reader.option("operatorId", operator).load(checkpoint)
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
    is_delivery = sql.col("name").contains("-delivery-") | sql.col("name").contains("-bundle-")
    wanted = sql.col("cell").isin([*headers]) & is_delivery
    pieces: dict[int, dict[str, list[bytes]]] = {key: {} for key in headers}
    for row in state.where(wanted).orderBy("cell", "name", "part").toLocalIterator():
        pieces[row.cell].setdefault(row.name, []).append(unpacked(row.bytes, row.plain))
    return {
        key: {name: b"".join(parts) for name, parts in each.items()} for key, each in pieces.items()
    }

"""What a source says about how its writer has put rows into partitions, checked row by row.

That a topic or a folder is partitioned by a column is the word of whoever names the option. Nothing
but rows can confirm it: so for every row that is read, the partition that its value belongs to is
compared with the one that it is in. The first that is elsewhere is an error, and no answer is given
from rows of which some may have been overlooked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.values.partitioner import Partitioner

_BUCKET = re.compile(r"_(\d+)(?:\..*)?$")
"""The number of a bucket in the name of a file of Spark's: ``part-…_00003.c000.snappy.parquet``."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """Rows lie in partitions by ``column``."""

    column: str
    by: Partitioner

    def check(self, table: pa.Table, partitions: int | NDArray[np.int64], where: str) -> None:
        """An error if a row of ``table`` is not where its value belongs; rows without one may be
        anywhere."""
        if self.column not in table.column_names or not len(table):
            return
        values = table.column(self.column).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = values.chunk(0)
        numbers = self.by.numbers(values)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(valid & (numbers != partitions))
        if len(wrong):
            row = int(wrong[0])
            there = partitions if isinstance(partitions, int) else int(partitions[row])
            raise InputError(
                f"{where}: a row with {self.column} = {values[row].as_py()!r} is in partition "
                f"{there}, and {self.by} puts it into {int(numbers[row])}: this is not partitioned "
                f"by {self.column} in this way, or partitions were added; leave partitionedBy out, "
                "and every cell reads all of it"
            )


def bucket_of(name: str) -> int | None:
    """The bucket that the name of a file tells; None if it tells none."""
    found = _BUCKET.search(name.rpartition("/")[2])
    return None if found is None else int(found[1])

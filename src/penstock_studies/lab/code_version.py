"""Which code a number was measured with: a digest of the sources that a measurement can depend on.

What only shows (charts, reports, the command line) and what no experiment runs (Spark, jobs) is
left out, so that a better label does not throw away hours of runs.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import penstock
import penstock_studies

NOT_MEASURED = (
    "cli",
    "dashboard",
    "job",
    "spark",
    "telemetry",
    "testing",
    "lab",
    "figures",
    "peers",
)


@cache
def code_version() -> str:
    """Twelve hexadecimal digits."""
    return version_of(Path(penstock.__file__).parent, Path(penstock_studies.__file__).parent)


def version_of(*folders: Path) -> str:
    """The same for the packages in ``folders``."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            name = file.relative_to(folder).as_posix()
            if not name.startswith(tuple(f"{each}/" for each in NOT_MEASURED)):
                digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]

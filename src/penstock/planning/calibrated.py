"""Where the unit costs measured by ``penstock calibrate`` are kept: one file per user.

The folder is that of the XDG rules (``XDG_CACHE_HOME``, else ``~/.cache``). The file is written
beside its place and then moved there, so a reader never sees half of it. What cannot be read is as
good as not there: a plan does not fail because of a damaged cache.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from penstock.errors import PenstockError
from penstock.planning.unit_costs import UnitCosts


def calibration_file() -> Path:
    """The file of this user."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return folder / "penstock" / "unit-costs.json"


def calibrated_costs() -> UnitCosts | None:
    """What was measured on this machine, None if nobody has."""
    try:
        return UnitCosts.from_json(json.loads(calibration_file().read_text()))
    except (OSError, RuntimeError, ValueError, TypeError, AttributeError, PenstockError):
        return None


def keep_costs(costs: UnitCosts) -> Path:
    """Keep ``costs`` for later plans; where."""
    file = calibration_file()
    temporary: str | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=file.name, delete=False
        ) as out:
            temporary = out.name
            json.dump(costs.to_json(), out, indent=2)
        os.replace(temporary, file)
    except OSError as problem:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise PenstockError(f"cannot keep the measured costs in {file}: {problem}") from None
    return file

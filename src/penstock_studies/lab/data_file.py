"""The rows of an experiment as CSV, and beside them where they come from, as JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from penstock_studies.lab.runner import Outcome


def write_data(outcome: Outcome, folder: Path) -> Path:
    """``NAME.csv`` and ``NAME.json`` in ``folder``; the first is returned."""
    folder.mkdir(parents=True, exist_ok=True)
    experiment, rows = outcome.experiment, outcome.rows
    file = folder / f"{experiment.name}.csv"
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, columns)
        writer.writeheader()
        writer.writerows(rows)
    verdict = experiment.judge(rows)
    about = {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "claim": experiment.claim,
        "verdict": verdict.standing,
        "measured": verdict.measured,
        "scale": outcome.scale,
        "seed": outcome.seed,
        "failures": dict(outcome.failures),
        "points": [
            {
                "function": each.function,
                "parameters": each.parameters,
                "code": each.code,
                "date": each.date,
                "seconds": each.seconds,
                "machine": each.machine,
            }
            for each in outcome.measured
        ],
    }
    (folder / f"{experiment.name}.json").write_text(json.dumps(about, indent=1) + "\n")
    return file

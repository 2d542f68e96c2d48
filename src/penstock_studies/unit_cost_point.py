"""Table 3 of JTree on this machine: what joining, inserting and deleting a tuple costs."""

from __future__ import annotations

from penstock.planning.unit_costs import PAPER
from penstock_studies.lab.experiment import Parameters, Row

OPERATIONS = {"join": "C_j", "insert": "C_i", "delete": "C_d"}


def measure_unit_costs(parameters: Parameters, seed: int) -> list[Row]:
    """Calibrate, and put the paper's costs beside ours."""
    from penstock.machine.calibration import calibrate

    here, paper = calibrate().costs.to_json(), PAPER.to_json()
    return [
        {"operation": symbol, "name": name, "paper": 1e9 * paper[name], "here": 1e9 * here[name]}
        for name, symbol in OPERATIONS.items()
    ]

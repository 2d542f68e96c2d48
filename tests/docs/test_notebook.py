"""The notebook runs from top to bottom, and plans and explanations draw themselves in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "tour.ipynb"


def outputs(notebook: Any, kind: str) -> list[str]:
    return [
        "".join(output["data"][kind])
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not [cell for cell in notebook.cells if cell.get("outputs")]


@pytest.mark.xdist_group("notebook")
def test_it_runs_and_draws() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=1_800, kernel_name="python3").execute()
    html = outputs(notebook, "text/html")
    assert sum("<svg" in each for each in html) >= 4
    assert any("two-layer" in each for each in html)
    assert len(outputs(notebook, "image/svg+xml")) == 1
    printed = [
        output["text"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output["output_type"] == "stream" and output["name"] == "stdout"
    ]
    assert any("flowchart LR" in text for text in printed)
    assert any("complete" in text for text in printed)

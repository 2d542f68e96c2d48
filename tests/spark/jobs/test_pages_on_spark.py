"""The Python of the pages that need Spark prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
PAGES = ["how-to/join-dataframes.md", "how-to/change-a-running-query.md"]
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize("page", PAGES)
def test_python_prints_what_the_page_says(
    page: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = spark.conf.get(PARTITIONS)
    names: dict[str, object] = {}
    try:
        for number, block in enumerate(BLOCK.finditer((ROOT / "docs" / page).read_text())):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], f"{page}, block {number}", "exec"), names)
            if block["output"] is not None:
                assert printed.getvalue() == block["output"], f"block {number}"
    finally:
        spark.conf.set(PARTITIONS, str(before))


def test_the_readme_has_the_join_of_the_page() -> None:
    """Its example on Spark is run as part of the page."""
    (example,) = re.findall(r"^```py\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    page = (ROOT / "docs" / "how-to" / "join-dataframes.md").read_text()
    assert example.strip() in page

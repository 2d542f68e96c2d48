"""What a person sees: whole error messages, against the golden file ``refused.txt``.

The file holds queries (lines after ``>``) and what is printed for each. To accept new wording, run
this file as a script, and read the difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from query_schemas import refuse

GOLDEN = Path(__file__).with_name("refused.txt")


def cases() -> Iterator[tuple[str, str]]:
    """Query and expected message."""
    for entry in GOLDEN.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = entry.split("\n")
        query = [line[2:] for line in lines if line.startswith("> ")]
        yield "\n".join(query), "\n".join(lines[len(query) :])


@pytest.mark.parametrize(("query", "message"), list(cases()))
def test_message(query: str, message: str) -> None:
    assert str(refuse(query)) == message


if __name__ == "__main__":
    renewed = [
        "\n".join([*(f"> {line}" for line in query.split("\n")), str(refuse(query))])
        for query, _ in cases()
    ]
    GOLDEN.write_text("\n\n".join(renewed) + "\n", encoding="utf-8")

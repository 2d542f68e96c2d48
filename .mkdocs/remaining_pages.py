"""A hook of mkdocs: pages that the navigation does not name go to the end of their section.

The order of the pages that are named is on purpose; a new page is found all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECTIONS = {
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
    "notes": "Design notes",
}


def on_config(config: Any) -> Any:
    """Called by mkdocs when it has read its configuration."""
    docs = Path(config["docs_dir"])
    named = set(_pages(config["nav"]))
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs).as_posix()
        if name not in named:
            _section(config["nav"], SECTIONS.get(name.partition("/")[0])).append(name)
    return config


def _pages(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    inside = nav.values() if isinstance(nav, dict) else nav
    return [page for each in inside for page in _pages(each)]


def _section(nav: list[Any], title: str | None) -> list[Any]:
    for each in nav:
        if isinstance(each, dict) and isinstance(each.get(title), list):
            section: list[Any] = each[title]
            return section
    return nav

"""The page as one document: for the server, and as a file that needs nothing else.

The scripts are small files, one per concept, put together in a fixed order. Nothing that comes from
a run is ever part of a script or of markup: the file that is written to be sent to somebody has the
run as JSON in a data block, in which no character can end the block, and its policy lets run only
the one script with the hash of ours.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "element",
    "numbers",
    "plan_picture",
    "time_line",
    "marks",
    "cells",
    "sources",
    "plans",
    "page",
)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@cache
def static(name: str) -> str:
    return (files("penstock.ui") / "static" / name).read_text(encoding="utf-8")


@cache
def script() -> str:
    """All scripts, as one that leaves no names behind."""
    parts = "\n".join(static(f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def style() -> str:
    return static("page.css")


def live_page() -> str:
    """The page that listens to its server."""
    links = '<link rel="stylesheet" href="page.css">'
    return _page(links, '<script src="page.js" defer></script>')


def exported_page(message: Mapping[str, Any]) -> str:
    """``message``, which holds everything, as a page that is complete in itself."""
    policy = (
        f"default-src 'none'; script-src '{_hash(script())}'; style-src '{_hash(style())}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style()}</style>'
    )
    end = (
        f'<script type="application/json" id="run">{json_in_markup(message)}</script>\n'
        f"<script>{script()}</script>"
    )
    return _page(head, end)


def json_in_markup(value: Any) -> str:
    """JSON that is safe inside a script element: no ``<``, so nothing that could end it."""
    text = json.dumps(value, allow_nan=False)
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _page(head: str, end: str) -> str:
    return static("page.html").replace("<!-- head -->", head).replace("<!-- end -->", end)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

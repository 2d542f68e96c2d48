"""A process that measures one point: a request as JSON on stdin, rows as JSON on stdout.

A process of its own gives every point the same start (no warm caches of the one before, no memory
that somebody else holds) and bounds: the address space by the system, the time by whoever waits.
What a measurement prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import json
import sys
from importlib import import_module
from typing import Any


def measure(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Call the function that the request names."""
    module, _, name = request["function"].partition(":")
    function = getattr(import_module(module), name)
    return [dict(row) for row in function(request["parameters"], request["seed"])]


def _bound(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Not on Windows: there the time alone is bounded.
        return
    bound = megabytes * 2**20
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or bound < hard:
        resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


def main() -> None:
    request = json.load(sys.stdin)
    _bound(request["megabytes"])
    with contextlib.redirect_stdout(sys.stderr):
        rows = measure(request)
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()

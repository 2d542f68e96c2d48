"""What must not be read in messages: values that are secret by their name or by their origin.

Values come into a job by its file. One whose name says that it is secret (``…password``,
``…secret.key``) is shown as ``(not shown)``. One that was put in for a variable of the environment
may be anything, a password most of all, and is shown as what the file has in its place:
``${NAME}``. Messages are not only ours: Spark, its connectors and Java repeat what they were given.
So the values are noted once, for the whole process, where the file is read, and every message on
its way to a terminal, a log, an event or a page goes through :func:`redacted`.

Names of streams, plans and queries do not: a variable whose value is the name of a stream would
make them unreadable, and they are no places for secrets.
"""

from __future__ import annotations

import re
import threading

NOT_SHOWN = "(not shown)"
SHORTEST = 4
"""Characters of the shortest value that is looked for in messages. Shorter ones are in every text;
a message that is about such a value itself does not show it either."""

_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|private.?key|access.?key|account.?key|api.?key|"
    r"jaas|sas.?key|signature|\bauth",
    re.IGNORECASE,
)
_INSIDE = re.compile(r"(?i)(?:secret|passw\w*|token)\s*=\s*(\"[^\"]*\"|'[^']*'|[^\s;,&]+)")
_USER_INFO = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")

_noted: dict[str, str] = {}
_lock = threading.Lock()


def is_secret(name: str) -> bool:
    """Whether an option called ``name`` holds a secret."""
    return _SECRET.search(name) is not None


def note_secret(value: str, shown: str = NOT_SHOWN) -> None:
    """Messages have ``shown`` in place of ``value`` from now on."""
    parts = [value, *(found.strip("\"'") for found in _INSIDE.findall(value))]
    with _lock:
        for part in parts:
            if len(part.strip()) >= SHORTEST:
                _noted[part] = shown
                _noted[part.strip()] = shown


def redacted(text: str) -> str:
    """``text`` as it may be shown."""
    with _lock:
        noted = sorted(_noted.items(), key=lambda each: len(each[0]), reverse=True)
    for value, shown in noted:
        text = text.replace(value, shown)
    text = _INSIDE.sub(lambda found: found[0].replace(found[1], NOT_SHOWN), text)
    return _USER_INFO.sub(lambda found: found[0].replace(f":{found[1]}@", f":{NOT_SHOWN}@"), text)


def forget_secrets() -> None:
    """Nothing is noted any more."""
    with _lock:
        _noted.clear()

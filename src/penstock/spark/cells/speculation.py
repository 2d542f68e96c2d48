"""Two copies of a task that do not do the same: only where state tells them apart.

Spark may accept the output of one copy of a task and keep the state of another: with format 1 of
the state store both write the same file. That does no harm where copies do the same, as they do
under ``exact``. Under ``shed`` a result leaves in the batch of its last tuple or never, so the
state is the same whatever was dropped. But ``defer`` decides by the clock what is put off, and
what one copy has put off the other may have sent: it would leave twice, or not at all. Format 2
names the state after the copy whose output was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.engine.overload.overload import Overload
from penstock.errors import OptionError

SPECULATION = "spark.speculation"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"


def check_speculation(setting: Callable[[str, str], str | None], overload: Any) -> None:
    """:class:`OptionError` if the settings of a session do not go with ``overload``.

    >>> check_speculation({"spark.speculation": "true"}.get, "exact")
    """
    if Overload.of(overload).policy != "defer":
        return
    if str(setting(SPECULATION, "false")).lower() == "true" and setting(FORMAT, "1") != "2":
        raise OptionError(
            f'overload: found "defer" with {SPECULATION} = true, where the results of one copy of '
            "a task may be accepted and the state of another kept; set "
            f'{FORMAT} to "2" for a new checkpoint, or turn speculation off'
        )

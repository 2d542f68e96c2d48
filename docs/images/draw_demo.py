"""Draws ``demo.svg``: the screen of a real run of ``penstock demo`` on Spark, near its end.

::

    python docs/images/draw_demo.py [SECONDS]
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from penstock.cli.demo.spark_demo import run_spark_demo
from penstock.cli.run import run_job
from penstock.cli.run.progress import Progress
from penstock.cli.run.view import LiveView
from penstock.telemetry import Batch, Event

WIDTH = 104
FILE = Path(__file__).with_name("demo.svg")
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
frames: list[str] = []


class RecordedView(LiveView):
    """Keeps a picture of the screen after every micro-batch."""

    def show(self, progress: Progress, events: list[Event]) -> None:
        super().show(progress, events)
        if any(isinstance(event, Batch) for event in events):
            page = Console(
                record=True,
                width=WIDTH,
                force_terminal=True,
                color_system="truecolor",
                file=io.StringIO(),
            )
            page.print(self.screen(progress))
            frames.append(page.export_svg(title="penstock demo"))


def main(seconds: float) -> int:
    run_job.LiveView = RecordedView  # type: ignore[misc]
    console = Console(highlight=False, force_terminal=True, width=WIDTH)
    code = run_spark_demo("auto", 0, seconds, None, console=console)
    if code == 0:
        picture = frames[-max(1, len(frames) // 10)]
        # The fonts would be fetched from elsewhere; any font of one width will do.
        FILE.write_text(_FONT.sub("", picture).replace("Fira Code", "ui-monospace, Menlo"))
    return code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0))

"""``penstock bench peers``: runs what was chosen, and writes table and plot."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path

from penstock.errors import OptionError, PenstockError


def run(options: argparse.Namespace) -> int:
    _check_system()
    from penstock_studies.peers.peers_bench import PeersBench, Settings, say, to_json
    from penstock_studies.peers.table import report

    settings = Settings.of(
        cache=Path(options.cache) if options.cache else _cache_folder(),
        cases=_names(options.cases),
        peers=_names(options.peers),
        rounds=options.rounds,
        cores=options.cores,
        seconds=options.seconds,
        memory_gb=options.memory,
        shrink=options.shrink,
        quick=options.quick,
        fresh=options.fresh,
    )
    output = Path(options.output)
    try:
        output.mkdir(parents=True, exist_ok=True)
        settings.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {error.filename}: {error.strerror}") from None
    lines = PeersBench(settings).run()
    text = report(lines, settings, f"{datetime.now(UTC):%Y-%m-%d}")
    (output / "peers.md").write_text(text)
    (output / "peers.json").write_text(to_json(lines) + "\n")
    print(text, end="")
    try:
        from penstock_studies.peers.plot import plot

        plot(lines, output / "peers.png")
    except ImportError:
        say("no plot, as matplotlib is not installed: pip install 'penstock[experiments]'")
    wrong = [line for line in lines if line.wrong]
    for line in wrong:
        say(f"wrong answer: {line.case.name}, {line.peer.title}, {line.variant}: {line.wrong}")
    return 1 if wrong else 0


def _check_system() -> None:
    """What would fail after minutes is found at once."""
    try:
        from penstock.spark.start import process_tree
    except ImportError:
        raise PenstockError("Spark is not installed: pip install 'penstock[spark]'") from None
    if not process_tree.is_known():
        raise PenstockError("this benchmark reads CPU seconds from /proc, which is not here")


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path.home() / ".cache") / "penstock" / "peers"


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(","))

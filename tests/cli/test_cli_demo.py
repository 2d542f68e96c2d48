"""The embedded demo: ends by itself, shows what it should, and is right."""

from __future__ import annotations

import io
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from rich.console import Console

import penstock
from penstock.cli.demo.run import run_demo
from penstock.cli.demo.streams import LATENESS, QUERY, SCHEMAS, AuctionHouse
from penstock.cli.demo.surge import Policy
from penstock.cli.demo.view import _spent


def test_runs_as_a_command_and_ends_by_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", "demo", "--embedded", "--rows", "60000"],
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "SELECT bids.ts" in done.stdout
    assert "plan (bids auctions persons)" in done.stdout
    for label in ("input", "engine", "results", "late", "state", "a result"):
        assert f"\n{label} " in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_screen_shows_everything(width: int) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=width, height=60)
    progress = run_demo(plan="((bids auctions) persons)", rows=150_000, console=console)
    shown = written.getvalue()
    for word in ("persons", "auctions ⋈ bids", "latest results", "late, dropped", "summary"):
        assert word in shown
    assert f"{progress.results:,}" in shown
    assert progress.results > 0


def test_disorder_and_late_tuples_are_there() -> None:
    progress = run_demo(rows=300_000, console=Console(file=io.StringIO()))
    metrics = progress.metrics
    assert 0 < metrics["late"] < progress.rows / 1_000
    assert metrics["rows"] == progress.rows


def test_a_seed_gives_one_run_whatever_the_plan() -> None:
    answers = []
    for plan in ("auto", "((bids auctions) persons)", "((persons bids) auctions)"):
        house = AuctionHouse(seed=7)
        query = penstock.parse(QUERY, schemas=SCHEMAS)
        engine = penstock.Engine(query, plan=plan, lateness=LATENESS)
        tables = [engine.push(house.step()) for _ in range(6)]
        rows = pa.concat_tables(tables).to_pylist()
        answers.append(Counter(tuple(row.values()) for row in rows))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].total() > 0


def test_another_seed_is_another_run() -> None:
    first, second = AuctionHouse(seed=1).step(), AuctionHouse(seed=2).step()
    assert first["bids"] != second["bids"]


@pytest.mark.parametrize(("policy", "word"), [("shed", "results lost"), ("defer", "probes owed")])
def test_a_surge_is_seen_at_once_and_its_price_is_told(policy: Policy, word: str) -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=100, height=60)
    progress = run_demo(rows=800_000, console=console, overload=policy)
    shown = written.getvalue()
    assert progress.metrics["overload"]["short"]
    for each in ("SHORT OF CPU", word, f"{policy}, 20000 probes/s"):
        assert each in shown


@pytest.mark.parametrize("policy", ["shed", "defer"])
def test_what_a_run_lost_is_told_under_every_policy(policy: Policy) -> None:
    overload = {
        "policy": policy,
        "budget": "1 probes/s",
        "probes": 5,
        "skipped": 3,
        "paid": 2,
        "stale": 0,
        "forgotten": 0,
        "debt": {"probes": 0},
        "lost": {"results": 250.0, "error": 10.0},
    }
    assert "250 ± 10 results lost (25.0 % of all)" in _spent({"results": 750, "overload": overload})
    overload["lost"] = {"results": 0.0, "error": 0.0}
    assert "lost" not in _spent({"results": 750, "overload": overload})

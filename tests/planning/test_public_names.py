"""``penstock.plan`` is a function and a package at once, in whatever order it is imported."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

IMPORTS = (
    "import penstock; penstock.plan",
    "from penstock.plan import Plan, StreamSet; assert Plan",
    "import penstock.plan.notation; assert penstock.plan.notation.read('(A B)')",
    "from penstock.plan.plan import Join",
    "import penstock.planning.planner",
    "from penstock import Statistics, Limits, NoQualifiedPlan, plan; assert callable(plan)",
)
BOTH = """
import penstock
assert callable(penstock.plan)
from penstock.plan import Plan
import penstock.plan.notation
assert isinstance(penstock.plan.notation.read("(A B)"), penstock.Plan)
assert callable(penstock.plan)
"""
USE = """
import pyarrow as pa
import penstock
schema = pa.schema([("ts", pa.int64()), ("x", pa.int64())])
query = penstock.parse(
    "SELECT A.x FROM A [RANGE 1 SECOND], B [RANGE 1 SECOND] WHERE A.x = B.x",
    schemas={"A": schema, "B": schema},
)
statistics = penstock.Statistics(rates={"A": 1, "B": 2}, selectivities={("B", "A"): 0.1})
chosen = penstock.plan(query, statistics, penstock.Limits(cpu=1.0), planner="two-layer")
assert isinstance(chosen, penstock.Plan)
from penstock.plan import Plan
import penstock.plan.notation
assert isinstance(penstock.plan(query, statistics), Plan)
assert str(penstock.plan.notation.read(str(chosen))) == str(chosen) == "(A B)"
"""


def test_every_order_of_two_imports() -> None:
    """Fresh modules each time, then both uses of the name; in the end a plan is made."""
    program = (
        "import sys\n"
        "def forget():\n"
        "    for name in [n for n in sys.modules if n.partition('.')[0] == 'penstock']:\n"
        "        del sys.modules[name]\n"
        f"BOTH = {BOTH!r}\n"
    )
    for first, second in itertools.permutations(IMPORTS[::2] + IMPORTS[1:2], 2):
        program += f"forget()\n{first}\n{second}\nexec(BOTH)\n"
    program += USE
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=1_800
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", IMPORTS[:3])
def test_the_first_import_of_a_process(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", first + "\n" + USE],
        capture_output=True,
        text=True,
        check=False,
        timeout=1_800,
    )
    assert done.returncode == 0, done.stderr

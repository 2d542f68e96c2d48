"""Starting: one line when kernels are compiled, none when they are not, and quick then."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.kernels import compilation

PROGRAM = """
import json, time
import penstock, pyarrow as pa
schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("x", pa.int64())])
query = penstock.parse(
    "SELECT A.id AS a, B.id AS b, C.id AS c FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES], "
    "C [RANGE 5 MINUTES] WHERE A.x = B.x AND B.x = C.x",
    schemas={"A": schema, "B": schema, "C": schema},
)
engine = penstock.Engine(query, plan="((A B) C)")
batch = pa.table({"id": [1, 2], "ts": [10, 20], "x": [7, 8]})
results = engine.push({"A": batch, "B": batch, "C": batch}).num_rows
print(json.dumps({"results": results, "seconds": time.process_time(), "file": penstock.__file__}))
"""

WARM_UP = """
import importlib, inspect, json, pkgutil
import penstock.kernels
from penstock.machine.warm_up import warm_up
progress = []
warm_up(lambda done, total: progress.append((done, total)))
package = penstock.kernels
modules = [
    importlib.import_module(module.name)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
]
uncalled = [
    f"{module.__name__}.{name}"
    for module in modules
    for name, kernel in vars(module).items()
    if hasattr(kernel, "py_func")
    and kernel.__module__ == module.__name__
    and not kernel.signatures
    and inspect.getsource(module).count(f"{name}(") == 1
    and not any(vars(other).get(name) is kernel for other in modules if other is not module)
]
shown = {"progress": progress, "cases": progress[-1][1], "again": warm_up(), "uncalled": uncalled}
print(json.dumps(shown))
"""

PART_OF_ANOTHER = {"penstock.kernels.stable_hash.stable_hash"}
"""Part of the kernel that hashes texts in :mod:`penstock.values.value_hash`, which has it inside
when it is read from the cache."""


def _start(
    folder: Path | None = None, program: str = PROGRAM, **environment: str
) -> tuple[dict[str, Any], str]:
    """What a new process prints: its measurements, and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=1_800,
    )
    return json.loads(done.stdout), done.stderr


def test_the_first_start_says_that_it_compiles_and_the_second_is_quick(tmp_path: Path) -> None:
    """With a package folder that cannot be written, as in an image: numba has another place."""
    package = tmp_path / "penstock"
    shutil.copytree(
        Path(penstock.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "kernels" / "__pycache__").touch()
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}

    first, said = _start(tmp_path, **places)
    assert Path(first["file"]).parent == package
    assert first["results"] == 2
    assert said.splitlines() == [compilation.MESSAGE]

    second, said = _start(tmp_path, **places)
    assert second["results"] == 2
    assert said == ""


def test_other_compilations_are_not_ours(capfd: pytest.CaptureFixture[str]) -> None:
    import numba

    compilation.announce_compilation()
    assert numba.njit(lambda value: value + 1)(1) == 2
    assert "penstock" not in capfd.readouterr().err


def test_warm_up_leaves_nothing_to_compile() -> None:
    """Every kernel is called by some query of the warm-up, or from another kernel.

    In a process of its own: what other tests called would count as called.
    """
    found, _ = _start(program=WARM_UP)
    assert found["progress"] == [[done, found["cases"]] for done in range(1, found["cases"] + 1)]
    assert found["again"] == 0
    assert set(found["uncalled"]) <= PART_OF_ANOTHER

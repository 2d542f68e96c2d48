"""An environment for one peer: a folder with an interpreter and pinned packages.

It is made once and kept. Its name has a digest of the packages and of the Python that makes it, so
new pins make a new one; a marker that is written last tells a finished one from a torn one.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from penstock.errors import PenstockError
from penstock_studies.peers.peer import Peer

_SECONDS = 1_800


def interpreter(peer: Peer, environments: Path) -> Path:
    """The Python that runs ``peer``; installs it first, or :class:`PenstockError` says why not."""
    if peer.requirements is None:
        return Path(sys.executable)
    pins = peer.requirements.read_text()
    key = hashlib.sha256(f"{sys.version}\n{pins}".encode()).hexdigest()[:12]
    folder = environments / f"{peer.name}-{key}"
    python = folder / "bin" / "python"
    marker = folder / "installed"
    if not marker.is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [str(python), "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check"]
        _run([*pip, "install", "--requirement", str(peer.requirements)])
        marker.write_text(pins)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise PenstockError(f"installing took more than {_SECONDS} s") from None
    except OSError as error:
        raise PenstockError(str(error)) from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip() or "no word why").splitlines()
        errors = [line for line in lines if line.startswith("ERROR:")]
        raise PenstockError((errors or lines)[-1].removeprefix("ERROR: ")[:300])

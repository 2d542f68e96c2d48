"""A long run of random cases that can be interrupted and goes on where it was.

What it has done is a small file: the first seed, the next one, and how many seconds it took. Every
seed is a case of its own, so to go on is to begin with the next seed; the file is written after
every few cases, in one step, and a case that was interrupted is run again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.errors import OptionError
from penstock.testing.fuzz import fuzz

_WRITTEN_EVERY = 20
"""Cases after which the file is written: a few seconds of work are lost at most."""


@dataclass
class Campaign:
    """Cases that were run without a difference."""

    first: int
    """The first seed."""
    next: int
    """The next seed: those before it are done."""
    large_every: int
    """Every case of so many is large."""
    seconds: float = 0.0
    """How long it took so far."""

    @property
    def cases(self) -> int:
        return self.next - self.first

    @classmethod
    def read(cls, path: Path, seed: int, large_every: int) -> Campaign:
        """What ``path`` tells, or a new one that begins with ``seed``."""
        if not path.exists():
            return cls(seed, seed, large_every)
        try:
            found = cls(**json.loads(path.read_text()))
        except (ValueError, TypeError) as problem:
            raise OptionError(
                f"{path} is no record of a campaign ({problem}); give a new file, or remove it"
            ) from None
        if (found.first, found.large_every) != (seed, large_every):
            raise OptionError(
                f"{path} is about --seed {found.first} --large-every {found.large_every}, not "
                f"--seed {seed} --large-every {large_every}; give these, or another file"
            )
        return found

    def write(self, path: Path) -> None:
        """Keep it in ``path``; whoever reads it finds this or what was there before."""
        beside = path.with_name(f"{path.name}.new")
        beside.write_text(json.dumps(asdict(self)) + "\n")
        os.replace(beside, path)

    def go_on(
        self,
        path: Path,
        cases: int,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run until ``cases`` are done in all, or for so many ``seconds``. AssertionError tells of
        a case that differs: it is the next one, and is run again the next time."""
        before, began = self.seconds, clock()
        try:
            for seed, _ in fuzz(self.first + cases - self.next, self.next, self.large_every):
                self.next = seed + 1
                self.seconds = before + clock() - began
                if self.cases % _WRITTEN_EVERY == 0:
                    self.write(path)
                if seconds is not None and clock() - began >= seconds:
                    break
        finally:
            self.write(path)

"""The caches of the processor, as Linux tells them."""

from __future__ import annotations

from pathlib import Path

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cache_sizes(folder: Path = _CACHES) -> dict[str, int]:
    """Bytes of L2 and L3; what is not told is not there."""
    found = {}
    for each in sorted(folder.glob("index*")):
        try:
            level = (each / "level").read_text().strip()
            size = (each / "size").read_text().strip()
            if level in ("2", "3"):
                found[f"L{level}"] = int(size[:-1]) * _UNITS[size[-1]]
        except (OSError, ValueError, KeyError, IndexError):
            continue
    return found

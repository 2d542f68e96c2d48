"""Bytes as somebody might have damaged them: by accident, or on purpose.

Bits flip, bytes become the ones that bounds are tested by, runs are zeroed, copied, cut or put in,
and numbers of 32 or 64 bits, as lengths and offsets are, become large, small or negative.
"""

from __future__ import annotations

import hashlib
import struct
from random import Random

_BYTES = (0, 1, 2, 127, 128, 254, 255)
_NUMBERS = (0, 1, -1, 2, 7, 255, 65_535, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63))


def mutated(data: bytes, random: Random, most: int = 4, first: int = 0) -> bytes:
    """``data`` with one to ``most`` changes, none before the byte ``first``."""
    out = bytearray(data)
    for _ in range(random.randint(1, most)):
        _change(out, random, first)
    return bytes(out)


def _change(out: bytearray, random: Random, first: int) -> None:
    if len(out) <= first:
        return
    at = random.randrange(first, len(out))
    kind = random.randrange(8)
    if kind == 0:
        out[at] ^= 1 << random.randrange(8)
    elif kind == 1:
        out[at] = random.choice(_BYTES)
    elif kind == 2:
        at -= at % 4
        number = random.choice(_NUMBERS) & 0xFFFFFFFF
        out[at : at + 4] = struct.pack("<I", number)[: len(out) - at]
    elif kind == 3:
        at -= at % 8
        number = random.choice(_NUMBERS) & 0xFFFFFFFFFFFFFFFF
        out[at : at + 8] = struct.pack("<Q", number)[: len(out) - at]
    elif kind == 4:
        size = random.randint(1, 64)
        out[at : at + size] = bytes(len(out[at : at + size]))
    elif kind == 5:
        other = random.randrange(len(out))
        size = min(random.randint(1, 64), len(out) - max(at, other))
        out[at : at + size] = out[other : other + size]
    elif kind == 6:
        del out[at : at + random.randint(1, 32)]
    else:
        out[at:at] = bytes(random.choice(_BYTES) for _ in range(random.randint(1, 16)))


def signed(checkpoint: bytes) -> bytes:
    """A mutated ``checkpoint`` whose checksum is right again."""
    body = checkpoint[:-32]
    return body + hashlib.blake2b(body, digest_size=32).digest()

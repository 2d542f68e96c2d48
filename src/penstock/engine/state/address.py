"""Where an array lies in memory: for the tables of addresses that compiled calls work from.

numpy's own ways to tell (``ctypes.data``, ``__array_interface__``) make several objects and take
seven times as long, and a table has some eighty addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof, c_char
from typing import Any

from numpy.typing import NDArray

_at: Callable[[Any], c_char] = c_char.from_buffer


def address_of(array: NDArray[Any]) -> int:
    """The address of the first byte of ``array``, which can be written and is not empty."""
    return addressof(_at(array))

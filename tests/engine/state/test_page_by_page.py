"""Memory that comes page by page: nobody sees how it was given."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.state.page_by_page import give_page_by_page, zeros


@pytest.mark.parametrize("size", [0, 1, 10_000, 6 << 20])
def test_how_memory_is_given_is_not_seen(size: int) -> None:
    memory = np.empty(size, np.uint8)
    memory[: size // 2] = 3
    for small in (True, False):
        give_page_by_page(memory[1:], small)
        memory[size // 2 :] = 4
        assert (memory[: size // 2] == 3).all()
        assert (memory[size // 2 :] == 4).all()


def test_large_zeros_are_zero() -> None:
    array = zeros(3 << 20, np.int32)
    assert array.dtype == np.int32
    assert not array.any()
    array[:] = 5
    assert (array == 5).all()

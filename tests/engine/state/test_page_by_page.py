"""Memory that comes page by page: all zero where it was cleared, and as it was elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.engine.state import page_by_page
from penstock.engine.state.page_by_page import clear_in_pieces, give_page_by_page, zeros


@pytest.mark.parametrize(
    ("sizes", "pauses"), [((100, 50), 0), ((8192,), 2), ((0, 4095, 1), 1), ((12_000,), 2)]
)
def test_arrays_are_cleared_with_pauses(sizes: tuple[int, ...], pauses: int) -> None:
    """Four bytes each, and 16 KB at a time."""
    arrays = [np.full(size, 7, np.uint32) for size in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_by_page, "PIECE", 1 << 14)
        assert len(list(clear_in_pieces(arrays))) == pauses
    assert not any(array.any() for array in arrays)


def test_a_pause_comes_after_a_piece_at_most() -> None:
    array = np.full(5 * page_by_page.PIECE, 7, np.uint8)
    cleared = [int(np.count_nonzero(array == 0)) for _ in clear_in_pieces([array])]
    assert cleared == [page_by_page.PIECE * number for number in range(1, 6)]


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

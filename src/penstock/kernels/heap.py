"""Many small heaps of values with deaths, in one pool of nodes: MIN and MAX of what is alive.

A *leftist heap* (Crane 1972; Okasaki, Purely Functional Data Structures, 3.1) of each group has the
least living value on top: all work is the merge of two right spines, which are logarithmically
short. Nodes that are older than the push (below ``fresh``) are never written to: a merge copies
those that it changes. So a push makes new roots and new nodes and leaves the old heaps as they
were, and taking it back means forgetting both.

No node is removed at its death. At instant *t* the nodes on top whose death is before *t* are
popped, until the one on top is alive: it is the least of the living, since all below it is not
less. With ``prune`` (deaths are final) a node is dropped as soon as it is seen to be *dominated*:
another one is at least as small and dies no earlier, so it can never again be the answer.

A node is eight int64. Its key orders like the value (complemented for MAX: the heap is always for
the least). Byte strings have their first eight bytes as key, and their bytes in ``arena`` decide
between equal keys.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.kernel import kernel

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]

KEY, DEATH, LEFT, RIGHT, RANK, ENTRY, START, SIZE = range(8)
WIDTH = 8

_SPINES = 130
"""More nodes than two right spines can have, as a heap has fewer than 2^63 nodes."""


@kernel
def compare_bytes(nodes: Int64s, arena: Bytes, a: int, b: int) -> int:
    """The order of two byte strings with equal keys: negative, zero or positive."""
    start, other = nodes[a, START], nodes[b, START]
    size, other_size = nodes[a, SIZE], nodes[b, SIZE]
    for i in range(8, min(size, other_size)):
        x, y = arena[start + i], arena[other + i]
        if x != y:
            return -1 if x < y else 1
    if size != other_size:
        return -1 if size < other_size else 1
    return 0


@kernel
def precedes(nodes: Int64s, arena: Bytes, descending: bool, a: int, b: int) -> bool:
    """Whether ``a`` belongs above ``b``: less, or equal and longer alive."""
    if nodes[a, KEY] != nodes[b, KEY]:
        return bool(nodes[a, KEY] < nodes[b, KEY])
    if nodes[a, START] >= 0:
        order = compare_bytes(nodes, arena, a, b)
        if order != 0:
            return bool((order < 0) != descending)
    return bool(nodes[a, DEATH] > nodes[b, DEATH])


@kernel
def with_room(nodes: Int64s, head: int) -> Int64s:
    """``nodes``, or a larger copy if there might be too little room for one merge."""
    if head + _SPINES <= nodes.shape[0]:
        return nodes
    grown = np.empty((2 * nodes.shape[0] + _SPINES, WIDTH), np.int64)
    grown[:head] = nodes[:head]
    return grown


@kernel
def own(nodes: Int64s, head: int, fresh: int, node: int) -> tuple[int, int]:
    """``node``, or a copy of it that may be written to; and the new head."""
    if node >= fresh:
        return node, head
    for i in range(WIDTH):
        nodes[head, i] = nodes[node, i]
    return head, head + 1


@kernel
def hang(nodes: Int64s, node: int, child: int) -> None:
    """Make ``child`` the right child of ``node``, or its left one if that has the higher rank."""
    left = nodes[node, LEFT]
    left_rank = nodes[left, RANK] if left >= 0 else 0
    child_rank = nodes[child, RANK] if child >= 0 else 0
    if left_rank < child_rank:
        nodes[node, LEFT] = child
        nodes[node, RIGHT] = left
        nodes[node, RANK] = left_rank + 1
    else:
        nodes[node, RIGHT] = child
        nodes[node, RANK] = child_rank + 1


@kernel
def merge(
    nodes: Int64s,
    head: int,
    fresh: int,
    arena: Bytes,
    descending: bool,
    a: int,
    b: int,
    path: Int64s,
) -> tuple[int, int]:
    """The heap of all nodes in ``a`` and ``b`` (-1: none), and the new head."""
    depth = 0
    while a >= 0 and b >= 0:
        if precedes(nodes, arena, descending, b, a):
            a, b = b, a
        a, head = own(nodes, head, fresh, a)
        path[depth] = a
        depth += 1
        a = nodes[a, RIGHT]
    rest = a if a >= 0 else b
    while depth > 0:
        depth -= 1
        hang(nodes, path[depth], rest)
        rest = path[depth]
    return rest, head


@kernel
def insert(
    nodes: Int64s,
    head: int,
    fresh: int,
    arena: Bytes,
    descending: bool,
    prune: bool,
    root: int,
    node: int,
    path: Int64s,
    other_path: Int64s,
) -> tuple[Int64s, int, int]:
    """The nodes, the new head and the root, with the single ``node`` in the heap."""
    depth = 0
    below = root
    while below >= 0 and precedes(nodes, arena, descending, below, node):
        if prune and nodes[below, DEATH] >= nodes[node, DEATH]:
            return nodes, head, root
        path[depth] = below
        depth += 1
        below = nodes[below, RIGHT]
    if prune:
        while below >= 0 and nodes[below, DEATH] <= nodes[node, DEATH]:
            nodes = with_room(nodes, head)
            below, head = merge(
                nodes,
                head,
                fresh,
                arena,
                descending,
                nodes[below, LEFT],
                nodes[below, RIGHT],
                other_path,
            )
    nodes = with_room(nodes, head)
    node, head = own(nodes, head, fresh, node)
    nodes[node, LEFT] = below
    nodes[node, RIGHT] = -1
    nodes[node, RANK] = 1
    while depth > 0:
        depth -= 1
        parent, head = own(nodes, head, fresh, path[depth])
        hang(nodes, parent, node)
        node = parent
    return nodes, head, node


@kernel
def least_in_time(
    owner: Int64s,
    instant: Int64s,
    stop: Int64s,
    living: Int64s,
    order: Int64s,
    entering: int,
    events: Int64s,
    node_row: int,
    touched: Int64s,
    roots: Int64s,
    nodes: Int64s,
    head: int,
    fresh: int,
    arena: Bytes,
    descending: bool,
    prune: bool,
) -> tuple[Int64s, int, Int64s]:
    """Along the rows, the node with the least living value, or -1; with the nodes and their head.

    See :mod:`penstock.kernels.aggregate` for rows. The last node of a group is its new root.
    """
    rows = owner.shape[0]
    least = np.empty(rows, np.int64)
    path = np.empty(_SPINES, np.int64)
    other_path = np.empty(_SPINES, np.int64)
    root = -1
    for row in range(rows):
        if row == 0 or owner[row] != owner[row - 1]:
            root = roots[touched[owner[row]]]
            least[row] = root
            continue
        for at in range(stop[row - 1], stop[row]):
            if order[at] < entering:
                node = events[node_row, order[at]]
                if node >= 0:
                    nodes, head, root = insert(
                        nodes,
                        head,
                        fresh,
                        arena,
                        descending,
                        prune,
                        root,
                        node,
                        path,
                        other_path,
                    )
        if living[row] == 0:
            root = -1
        while root >= 0 and nodes[root, DEATH] < instant[row]:
            nodes = with_room(nodes, head)
            root, head = merge(
                nodes,
                head,
                fresh,
                arena,
                descending,
                nodes[root, LEFT],
                nodes[root, RIGHT],
                path,
            )
        least[row] = root
    return nodes, head, least


@kernel
def pack(
    nodes: Int64s, head: int, arena: Bytes, descending: bool, roots: Int64s, before: int
) -> tuple[Int64s, int]:
    """A new pool with only the heaps in ``roots``, which are renumbered, and their number.

    Nodes that died before ``before`` are left out.
    """
    packed = np.empty((head + 1, WIDTH), np.int64)
    stack = np.empty(head + 1, np.int64)
    path = np.empty(_SPINES, np.int64)
    count = 0
    for group in range(roots.shape[0]):
        if roots[group] < 0:
            continue
        start = count
        depth = 1
        stack[0] = roots[group]
        while depth > 0:
            depth -= 1
            node = stack[depth]
            for side in (LEFT, RIGHT):
                if nodes[node, side] >= 0:
                    stack[depth] = nodes[node, side]
                    depth += 1
            if nodes[node, DEATH] >= before:
                for i in range(WIDTH):
                    packed[count, i] = nodes[node, i]
                packed[count, LEFT] = -1
                packed[count, RIGHT] = -1
                packed[count, RANK] = 1
                count += 1
        size = count - start
        for i in range(size):
            stack[i] = start + i
        while size > 1:  # Neighbours first: linear in all.
            for i in range(size // 2):
                stack[i], _ = merge(
                    packed, 0, 0, arena, descending, stack[2 * i], stack[2 * i + 1], path
                )
            if size % 2 == 1:
                stack[size // 2] = stack[size - 1]
            size = (size + 1) // 2
        roots[group] = stack[0] if count > start else -1
    return packed, count


@kernel
def pack_single(nodes: Int64s, packed: Int64s, count: int, singles: Int64s) -> int:
    """Copy the nodes in ``singles`` (-1: none) behind the ``count`` packed ones; renumber them."""
    for i in range(singles.shape[0]):
        if singles[i] >= 0:
            for j in range(WIDTH):
                packed[count, j] = nodes[singles[i], j]
            singles[i] = count
            count += 1
    return count


@kernel
def pack_arena(nodes: Int64s, count: int, arena: Bytes, capacity: int) -> tuple[Bytes, int]:
    """An arena with only the bytes of the first ``count`` nodes, whose starts are renumbered."""
    size = 0
    for node in range(count):
        size += nodes[node, SIZE]
    packed = np.empty(max(capacity, size), np.uint8)
    place = 0
    for node in range(count):
        start = nodes[node, START]
        nodes[node, START] = place
        for i in range(nodes[node, SIZE]):
            packed[place + i] = arena[start + i]
        place += nodes[node, SIZE]
    return packed, place


@kernel
def put_bytes(
    nodes: Int64s,
    numbers: Int64s,
    arena: Bytes,
    place: int,
    data: Bytes,
    offsets: Int64s,
    descending: bool,
) -> None:
    """Give the nodes ``numbers`` (-1: NULL) the bytes ``data[offsets[i]:offsets[i + 1]]``."""
    for row in range(numbers.shape[0]):
        node = numbers[row]
        if node < 0:
            continue
        start = offsets[row]
        size = offsets[row + 1] - start
        nodes[node, START] = place
        nodes[node, SIZE] = size
        key = np.uint64(0)
        for i in range(8):
            key <<= np.uint64(8)
            if i < size:
                key |= np.uint64(data[start + i])
        ordered = np.int64(key ^ np.uint64(1 << 63))
        nodes[node, KEY] = ~ordered if descending else ordered
        for i in range(size):
            arena[place + i] = data[start + i]
        place += size


@kernel
def get_bytes(nodes: Int64s, numbers: Int64s, arena: Bytes) -> tuple[Bytes, Int64s]:
    """The bytes of the nodes ``numbers`` (-1: none), one after another, and their offsets."""
    offsets = np.zeros(numbers.shape[0] + 1, np.int64)
    for row in range(numbers.shape[0]):
        size = nodes[numbers[row], SIZE] if numbers[row] >= 0 else 0
        offsets[row + 1] = offsets[row] + size
    data = np.empty(offsets[-1], np.uint8)
    for row in range(numbers.shape[0]):
        if numbers[row] >= 0:
            start = nodes[numbers[row], START]
            for i in range(nodes[numbers[row], SIZE]):
                data[offsets[row] + i] = arena[start + i]
    return data, offsets


@kernel
def get_keys(nodes: Int64s, least: Int64s, rows: Int64s, descending: bool) -> tuple[Int64s, Bools]:
    """The keys of the values in ``rows`` of ``least``, and where there is one."""
    keys = np.zeros(rows.shape[0], np.int64)
    known = np.zeros(rows.shape[0], np.bool_)
    for i in range(rows.shape[0]):
        node = least[rows[i]]
        if node >= 0:
            keys[i] = ~nodes[node, KEY] if descending else nodes[node, KEY]
            known[i] = True
    return keys, known

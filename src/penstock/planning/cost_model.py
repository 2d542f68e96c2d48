"""The cost model of JTree section 2: CPU and memory of any jtree, per second.

A join of inputs X₁ … X_k costs what its inputs cost to store and what its probes cost:

    Σ λ_X (C_i + C_d)                                  insertions and deletions, and |S_X| of memory
  + Σ over steps of its probe orders of  matches · C_j  joining pairs

and a plan costs the sum over its joins. The result of the root is not stored. For the paper's
((A B) C) and (A B C) this gives equations 1 to 7 term by term. Departures, each zero in the
paper's setting (:mod:`penstock.planning.unit_costs`): looks that find nothing, comparisons of
nested loops where no equality links two inputs, further indexes, arrivals, results, batches;
windows may differ; memory is in bytes; and under feedback only the share of a state that was asked
for is made.

Equation 6 minus equation 7 decides whether storing pays. The paper concludes that the best binary
tree is the cheapest plan in CPU and lets its planner give up when that tree is too expensive. But
by its own equations an mjoin or a mixed plan may be cheaper still, when maintenance (7) costs more
than recomputation (6); our planners do not rely on it.
"""

from __future__ import annotations

from penstock.planning.block import NOTHING, Block, Cost
from penstock.planning.probe_orders import probe_orders
from penstock.planning.shape import Shape, joins_of


def join_cost(block: Block, parts: tuple[int, ...]) -> Cost:
    """A join of ``parts``: its probes, and the windows and states of its inputs."""
    found = block.join_costs.get(parts)
    if found is None:
        stored = storing(block, parts)
        found = Cost(probing(block, parts) + stored.cpu, stored.memory)
        block.join_costs[parts] = found
    return found


def storing(block: Block, parts: tuple[int, ...]) -> Cost:
    """The windows and states of the inputs of a join: all of its memory, quickly known."""
    found = block.stored_inputs.get(parts)
    if found is None:
        cpu = memory = 0.0
        for part, indexes in zip(parts, block.indexes(parts), strict=True):
            stored = block.storing(part, indexes)
            cpu += stored.cpu
            memory += stored.memory
        found = block.stored_inputs[parts] = Cost(cpu, memory)
    return found


def probing(block: Block, parts: tuple[int, ...]) -> float:
    """The CPU of all probes of a join, and of the batches that they come in."""
    steps = len(parts) * (len(parts) - 1)
    return probe_orders(block, parts).cpu + block.pushes * steps * block.costs.step


def shape_cost(block: Block, shape: Shape) -> Cost:
    """A whole tree."""
    if not shape.inputs:
        return block.storing(shape.mask, 0)
    cpu = memory = 0.0
    for node in joins_of(shape):
        cost = join_cost(block, node.parts)
        cpu += cost.cpu
        memory += cost.memory
    return Cost(cpu, memory)


def least_memory(block: Block) -> float:
    """No plan of the block needs less, not even one with cross products: its windows, with an
    index if a window has an equality with every other stream, so that no first join can do
    without."""
    total = NOTHING
    for i in range(len(block.windows)):
        indexed = not block.nested_loops and block.hashed[i] | 1 << i == block.everything
        total = total.plus(block.storing(1 << i, int(indexed and len(block.windows) > 1)))
    return total.memory


def least_cpu(block: Block) -> float:
    """No plan of the block needs less: its tuples are stored, and its results are made."""
    cpu = block.cardinality.rate(block.everything) * block.costs.join
    if len(block.windows) == 1:
        cpu = 0.0
    return cpu + sum(block.storing(1 << i, 1).cpu for i in range(len(block.windows)))

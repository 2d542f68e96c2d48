"""One mjoin per block, with the best probe order for every input.

It stores nothing but the windows, so it is the plan with the least memory (JTree section 2.2),
except that an input looked up by several lists of keys needs several indexes.
"""

from __future__ import annotations

from penstock.planning.problem import Candidate, Problem
from penstock.planning.shape import mjoin


def mjoin_ordering(problem: Problem) -> Candidate:
    """The best plan that is a single mjoin."""
    return problem.evaluate([mjoin(block.everything) for block in problem.blocks])

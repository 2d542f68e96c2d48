"""What tests need, of Penstock itself and of those who build on it.

- :class:`Oracle` is the meaning of an answer as code, by brute force; :func:`answer` runs it.
- :func:`generate` makes random cases from a seed, within :class:`Knobs`; :mod:`strategies
  <penstock.testing.strategies>` makes them for Hypothesis.
- :func:`check_case` runs an engine beside the oracle, :func:`shrink` makes a failing case small.
- :mod:`duckdb_oracle <penstock.testing.duckdb_oracle>` is a second opinion, for RANGE windows.
"""

from penstock.testing.case import Case, table
from penstock.testing.checks import check_case
from penstock.testing.compare import assert_same_rows, difference, rows_of
from penstock.testing.generators import generate
from penstock.testing.knobs import FEATURES, Knobs
from penstock.testing.oracle import Oracle, answer
from penstock.testing.python_values import canonical, python_values
from penstock.testing.random_plan import random_plan
from penstock.testing.shrink import shrink

__all__ = [
    "FEATURES",
    "Case",
    "Knobs",
    "Oracle",
    "answer",
    "assert_same_rows",
    "canonical",
    "check_case",
    "difference",
    "generate",
    "python_values",
    "random_plan",
    "rows_of",
    "shrink",
    "table",
]

"""What SQL has and Penstock does not run: a message, and what to do instead.

By the word that opens the construct. Most of these words are names everywhere else, so that a
stream may have a column called ``offset`` or ``left``.
"""

from __future__ import annotations

_NO_ORDER = "results of a push come ordered by their birth; sort them in the reader"
NO_SUBQUERY = "join the streams of the subquery in FROM, or run it as a query of its own"
_INNER_ONLY = "write JOIN … ON …; only inner joins and CROSS JOIN exist"

REFUSED: dict[str, tuple[str, str]] = {
    "ORDER": ("ORDER BY is not supported", _NO_ORDER),
    "SORT": ("SORT BY is not supported", _NO_ORDER),
    "LIMIT": ("LIMIT is not supported: a stream has no end", "take what you need in the reader"),
    "OFFSET": ("OFFSET is not supported: a stream has no end", "skip rows in the reader"),
    "FETCH": ("FETCH is not supported: a stream has no end", "take what you need in the reader"),
    "QUALIFY": ("QUALIFY is not supported", "filter the rows of the answer in the reader"),
    "UNION": ("UNION is not supported", "run two queries and append their answers"),
    "INTERSECT": ("INTERSECT is not supported", "join the two on all of their columns"),
    "MINUS": ("MINUS is not supported", "write EXCEPT"),
    "OVER": ("window functions (OVER) are not supported", "aggregate with GROUP BY"),
    "FILTER": ("FILTER is not supported", "put the condition into WHERE"),
    "WITHIN": ("WITHIN GROUP is not supported", "use COUNT, SUM, AVG, MIN or MAX"),
    "WINDOW": (
        "the WINDOW clause is not supported",
        "write a window after each stream: A [ROWS 5]",
    ),
    "LEFT": ("outer joins are not supported", _INNER_ONLY),
    "RIGHT": ("outer joins are not supported", _INNER_ONLY),
    "FULL": ("outer joins are not supported", _INNER_ONLY),
    "OUTER": ("outer joins are not supported", _INNER_ONLY),
    "SEMI": ("semi joins are not supported", _INNER_ONLY),
    "ANTI": ("anti joins are not supported", "EXCEPT removes what has a partner"),
    "NATURAL": ("NATURAL joins are not supported", "write the equalities after ON"),
    "ASOF": ("ASOF joins are not supported", "compare the event times in WHERE"),
    "USING": ("USING is not supported", "write the equalities after ON"),
    "LATERAL": ("LATERAL is not supported", NO_SUBQUERY),
    "TABLESAMPLE": ("TABLESAMPLE is not supported", "sample before the stream comes in"),
    "PIVOT": ("PIVOT is not supported", "aggregate with GROUP BY"),
    "UNPIVOT": ("UNPIVOT is not supported", "select the columns one by one"),
    "WITH": ("common table expressions (WITH) are not supported", NO_SUBQUERY),
    "DISTINCT": ("DISTINCT is not supported: answers are bags", "group by the columns instead"),
    "INTO": ("INTO is not supported", "the answer goes where the caller of the engine sends it"),
    "ESCAPE": ("ESCAPE is not supported", "use LIKE without it"),
    "ILIKE": ("ILIKE is not supported", "write LOWER(x) LIKE 'pattern'"),
    "RLIKE": ("RLIKE is not supported", "use LIKE with % and _"),
    "SLIDE": ("SLIDE is not supported", "a window moves with every tuple; leave SLIDE out"),
}
"""Words that open a construct of SQL that Penstock does not run: what it is, what to do."""

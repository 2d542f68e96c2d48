"""What a row of a push takes by the share of all work that is done.

Fitted as fixed + each · share by least squares over recent pushes; older ones fade. If all recent
pushes had about the same share, they do not tell one from the other. So there is always a push with
a large share among the points: a whole one if that was measured in pushes of about as many rows,
else one of those with which a shortage begins.
"""

from __future__ import annotations

_FADE_PER_LOOK = 0.9
_PUSHES_OF_LARGE = 2.0
"""How many pushes the one with the large share counts for."""
LARGE_SHARE = 0.4
"""A share from which on a push tells what whole ones take."""
_NEW_PART = 0.3
"""How much a push counts for what those with a large share take."""
_LARGE_TO_KNOW = 2
"""Pushes with a large share that make it known."""
_TIMES_THE_ROWS = 2.0
"""Pushes of more or fewer rows than this times those of others do not cost as much per row."""
_TIMES_FORESEEN = 2.0
"""A push that takes more times as long as foreseen has met something that has nothing to do with
its rows; if not, the next one says so again."""
_LEAST_ELASTICITY = 0.1
"""The least elasticity of what is taken by the share: by how many per cent it falls with a share
lower by one."""
_HALF_FOLLOWS = 0.5
"""An elasticity from which on most of what a push takes follows the share."""
_LEAST_SPREAD = 0.05
"""How far shares must lie apart, as a standard deviation, to tell what follows them; if they do
not, all is taken to follow, until a lower share has told."""
_SHARES_TRIED = 16
"""Shares that are looked at for the least that is worth its CPU."""


class ShareCost:
    """A line through what pushes took."""

    def __init__(self) -> None:
        self._count = self._share = self._took = self._squares = self._products = 0.0
        self._books = 0.0
        self._large = 0.0, 0.0
        """The share of pushes with a large one, and what a row of them takes."""
        self._rows = 0.0
        """Rows of the last of these pushes."""
        self._seen = 0
        """Their number."""

    def is_known(self, rows: float) -> bool:
        """Whether it is known what pushes of so many ``rows`` take with a large share."""
        return (
            self._seen >= _LARGE_TO_KNOW
            and rows / _TIMES_THE_ROWS <= self._rows <= rows * _TIMES_THE_ROWS
        )

    def note_whole(self, took: float, rows: float) -> None:
        """A row of a push that was whole ``took`` so many seconds, as ever."""
        if not self.is_known(rows) or self._large[0] < 1.0:
            self._large, self._seen = (1.0, took), _LARGE_TO_KNOW
        self._large = 1.0, self._large[1] + _NEW_PART * (took - self._large[1])
        self._rows = rows

    def note(self, share: float, took: float, rows: float, books: float) -> None:
        """The same of one with this ``share``; ``books`` of the seconds went into limits."""
        if share >= LARGE_SHARE and not (self.is_known(rows) and self._large[0] >= 1.0):
            if not rows / _TIMES_THE_ROWS <= self._rows <= rows * _TIMES_THE_ROWS:
                self._seen = 0
            new = _NEW_PART if self._seen else 1.0
            known, dear = self._large
            self._large = known + new * (share - known), dear + new * (took - dear)
            self._rows, self._seen = rows, self._seen + 1
        if self._count > 2:
            took = min(took, _TIMES_FORESEEN * self.at(share))
        new = 1.0 / (1.0 + _FADE_PER_LOOK * self._count)
        self._count = 1.0 + _FADE_PER_LOOK * self._count
        self._share = share + _FADE_PER_LOOK * self._share
        self._took = took + _FADE_PER_LOOK * self._took
        self._squares = share * share + _FADE_PER_LOOK * self._squares
        self._products = share * took + _FADE_PER_LOOK * self._products
        self._books += new * (min(books, took) - self._books)

    @property
    def _line(self) -> tuple[float, float]:
        """What is taken in any case, and what by the share."""
        anchor = _PUSHES_OF_LARGE if self._seen else 0.0
        high, dear = self._large
        count, share, took = self._count + anchor, self._share + anchor * high, self._took
        took += anchor * dear
        squares = self._squares + anchor * high * high
        products = self._products + anchor * high * dear
        if not count:
            return 0.0, 0.0
        spread = squares - share * share / count
        if spread <= _LEAST_SPREAD**2 * count:
            return 0.0, took / share
        each = max(0.0, (products - share * took / count) / spread)
        fixed = (took - each * share) / count
        return max(0.0, fixed), each

    def at(self, share: float) -> float:
        """What a row of a push with this ``share`` takes."""
        fixed, each = self._line
        return fixed + each * share

    def least_share(self, power: float, streams: int, least: float) -> float:
        """The least share, from ``least`` on, that is worth its CPU; 1 if there is none.

        It keeps the share to this ``power`` of the results. Rows of all ``streams`` drawn outside
        would keep the part of the rows that fits, to the power of the streams; a push that gets
        none of them takes what is fixed here without the books.
        """
        fixed, each = self._line
        if each <= 0:
            return 1.0
        outside = max(0.0, fixed - self._books)
        share = max(least, _LEAST_ELASTICITY / (1.0 - _LEAST_ELASTICITY) * fixed / each)
        step = share ** (-1.0 / _SHARES_TRIED) if share < 1 else 1.0
        while share < 1:
            took = fixed + each * share
            drawn = min(1.0, (took - outside) / (fixed + each - outside))
            if each * share >= _HALF_FOLLOWS * took or share**power >= drawn**streams:
                return share
            share *= step
        return 1.0

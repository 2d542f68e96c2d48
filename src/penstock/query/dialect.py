"""CQL as a sqlglot dialect: text to :class:`~penstock.query.syntax.Query`.

The tokenizer, the precedence of operators and the expression trees are sqlglot's. Three things are
ours:

- **Few keywords.** sqlglot knows several hundred, and a stream may well have a column called
  ``timestamp``, ``offset``, ``key`` or ``range``. Only the words that SQL itself needs to find its
  clauses are reserved; every other word is a name, and CQL's own words (RANGE, ROWS, ISTREAM, …)
  are recognised by where they stand.
- **A closed grammar.** sqlglot accepts the union of thirty dialects and leaves the judgement to
  later stages. Here a construct that Penstock does not run is refused where it stands, with what to
  write instead. So the grammar of a query and the atoms of expressions are written out below, and
  the operator tables are cut down to what the engine can evaluate.
- **Positions.** Each node knows the characters that it was read from, for carets in errors.

Windows: ``[RANGE n UNIT]``, ``[RANGE UNBOUNDED]``, ``[UNBOUNDED]``, ``[NOW]``, ``[ROWS n]``,
``[ROWS UNBOUNDED]``, ``[PARTITION BY k, … ROWS n]``. Emission: ``SELECT ISTREAM …``,
``ISTREAM (SELECT …)`` and ``ISTREAM SELECT …`` mean the same, and count for the whole query.
``SELECT istream, …`` and ``SELECT A.istream`` are columns.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar, Literal, NoReturn, TypeVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import QueryError
from penstock.query.join_graph import Emission
from penstock.query.refused import NO_SUBQUERY, REFUSED
from penstock.query.syntax import (
    Block,
    FreshnessClause,
    FromItem,
    Item,
    Name,
    Query,
    Span,
    WindowClause,
)
from penstock.query.time_units import MICROSECONDS, UNITS
from penstock.query.window import Range, Rows, Unbounded, Window

Node = TypeVar("Node", bound=exp.Expr)

EMISSIONS: dict[str, Emission] = {
    "ISTREAM": "istream",
    "DSTREAM": "dstream",
    "RSTREAM": "rstream",
}

LONGEST = 9_000_000_000_000
"""Milliseconds, about 285 years: the longest window whose end fits 64 bits in nanoseconds."""
MOST_ROWS = 2**62

_PLAIN_NUMBER = re.compile(r"\d{1,15}(\.\d{0,12})?")
_INTERVAL_PART = re.compile(r"\s*([+-]?)\s*(\d{1,15}(?:\.\d{0,12})?)\s*([A-Za-z]+)\s*")
_COMMENT = re.compile(r"--[^\n\r]*|/\*.*?\*/|\{#.*?#\}", re.DOTALL)

_JOIN_WORDS = frozenset({"INNER", "CROSS", "JOIN"})
_WINDOW_WORDS = frozenset({"RANGE", "ROWS", "PARTITION", "NOW", "UNBOUNDED"})
_NO_ALIAS = frozenset(REFUSED) | _JOIN_WORDS | _WINDOW_WORDS | frozenset(EMISSIONS) | {"FRESHNESS"}
"""Words that are never an alias unless AS stands before them, or quotes around them."""


class CQL(Dialect):
    """CQL for Penstock."""

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "||": TokenType.DPIPE,
            "==": TokenType.EQ,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "ALL": TokenType.ALL,
            "AND": TokenType.AND,
            "AS": TokenType.ALIAS,
            "BETWEEN": TokenType.BETWEEN,
            "CASE": TokenType.CASE,
            "DISTINCT": TokenType.DISTINCT,
            "EXCEPT": TokenType.EXCEPT,
            "FALSE": TokenType.FALSE,
            "FROM": TokenType.FROM,
            "GROUP": TokenType.GROUP_BY,
            "HAVING": TokenType.HAVING,
            "IN": TokenType.IN,
            "INTERSECT": TokenType.INTERSECT,
            "IS": TokenType.IS,
            "JOIN": TokenType.JOIN,
            "LIKE": TokenType.LIKE,
            "LIMIT": TokenType.LIMIT,
            "NOT": TokenType.NOT,
            "NULL": TokenType.NULL,
            "ON": TokenType.ON,
            "OR": TokenType.OR,
            "ORDER": TokenType.ORDER_BY,
            "QUALIFY": TokenType.QUALIFY,
            "SELECT": TokenType.SELECT,
            "TRUE": TokenType.TRUE,
            "UNION": TokenType.UNION,
            "WHERE": TokenType.WHERE,
            "WITH": TokenType.WITH,
        }

    class Parser(parser.Parser):
        EQUALITY: ClassVar = {TokenType.EQ: exp.EQ, TokenType.NEQ: exp.NEQ}
        TERM: ClassVar = {
            TokenType.DASH: exp.Sub,
            TokenType.PLUS: exp.Add,
            TokenType.DPIPE: exp.DPipe,
        }
        FACTOR: ClassVar = {
            TokenType.MOD: exp.Mod,
            TokenType.SLASH: exp.Div,
            TokenType.STAR: exp.Mul,
        }
        UNARY_PARSERS: ClassVar = {
            kind: parser.Parser.UNARY_PARSERS[kind]
            for kind in (TokenType.PLUS, TokenType.DASH, TokenType.NOT)
        }
        RANGE_PARSERS: ClassVar = {
            kind: parser.Parser.RANGE_PARSERS[kind]
            for kind in (TokenType.BETWEEN, TokenType.IN, TokenType.IS, TokenType.LIKE)
        }

        # ---- the query -------------------------------------------------------------------------

        def read(self, found: list[Token], text: str) -> Query:
            """The whole of ``text``, whose tokens are ``found``."""
            self.reset()
            self.sql = text
            while found and found[-1].token_type == TokenType.SEMICOLON:
                found = found[:-1]
            self._chunks = [found]
            self._advance_chunk()
            if not self._curr:
                raise QueryError("the query is empty", text, 0, 1, _START_HINT)
            emission, blocks = self._chain()
            if self._at(TokenType.SEMICOLON):
                self._fail("only one query at a time", hint="remove the semicolon and what follows")
            if self._curr:
                self._unexpected("the end of the query")
            return Query(EMISSIONS[emission.text.upper()] if emission else "istream", tuple(blocks))

        def _chain(self) -> tuple[Token | None, list[Block]]:
            """``operand EXCEPT operand …``; only the leftmost may be a chain itself."""
            emission, blocks = self._operand()
            while self._match(TokenType.EXCEPT):
                if self._at(TokenType.ALL, TokenType.DISTINCT):
                    self._fail(
                        f"EXCEPT {self._curr.text.upper()} is not supported",
                        hint="write EXCEPT: it keeps duplicates, and one tuple of the second "
                        "query removes all tuples equal to it",
                    )
                start = self._curr
                second, right = self._operand()
                if second:
                    self._fail(f"{second.text.upper()} may stand only once", second, _ONE_EMISSION)
                if len(right) > 1:
                    self._fail(
                        "EXCEPT on the right-hand side of EXCEPT is not supported",
                        start,
                        hint="write the queries as one chain: a EXCEPT b EXCEPT c",
                    )
                blocks += right
            return emission, blocks

        def _operand(self) -> tuple[Token | None, list[Block]]:
            start = self._curr
            if self._word() in EMISSIONS and self._next.token_type in _QUERY_STARTS:
                self._advance()
                inner, blocks = self._operand()
                if inner:
                    self._fail(f"{inner.text.upper()} may stand only once", inner, _ONE_EMISSION)
                return start, blocks
            if self._match(TokenType.L_PAREN):
                emission, blocks = self._chain()
                self._expect(TokenType.R_PAREN, "')'")
                return emission, blocks
            if self._match(TokenType.SELECT):
                return self._block(start)
            if self._word() in REFUSED:
                self._unexpected("SELECT")
            return self._fail("a query starts with SELECT", hint=_START_HINT)

        def _block(self, start: Token) -> tuple[Token | None, list[Block]]:
            emission = None
            if self._word() in EMISSIONS and self._next.token_type not in _AFTER_COLUMN:
                after = self._tokens[self._index + 2 : self._index + 3]
                multiplies = after and after[0].token_type in _OPERANDS
                if self._next.token_type != TokenType.STAR or not multiplies:
                    emission = self._curr
                    self._advance()
            self._match(TokenType.ALL)
            items = [self._item()]
            while self._match(TokenType.COMMA):
                items.append(self._item())
            if not self._match(TokenType.FROM):
                self._unexpected("FROM")
            streams = [self._stream("comma")]
            while True:
                if self._match(TokenType.COMMA):
                    streams.append(self._stream("comma"))
                elif self._word() in _JOIN_WORDS:
                    streams.append(self._join())
                else:
                    break
            where = self._parse_disjunction() if self._match(TokenType.WHERE) else None
            group_by: list[exp.Expr] = []
            group_span = None
            if self._match(TokenType.GROUP_BY):
                group_span = _span(self._prev)
                if not self._match_text_seq("BY"):
                    self._unexpected("BY after GROUP")
                group_by.append(self._group_key())
                while self._match(TokenType.COMMA):
                    group_by.append(self._group_key())
            having = self._expression() if self._match(TokenType.HAVING) else None
            if self._curr and self._curr.token_type not in _AFTER_BLOCK:
                bare = self._word() in _WINDOW_WORDS
                self._unexpected(_CLAUSES, _BRACKETS if bare else None)
            block = Block(
                tuple(items),
                tuple(streams),
                where,
                tuple(group_by),
                group_span,
                having,
                (start.start, self._prev.end + 1),
            )
            return emission, [block]

        def _group_key(self) -> exp.Expr:
            if self._word() in ("ALL", "CUBE", "ROLLUP", "GROUPING") and (
                self._next.token_type != TokenType.DOT
                and (self._word() == "ALL" or self._next.text.upper() in ("(", "SETS"))
            ):
                self._fail(f"GROUP BY {self._word()} is not supported", hint="list the columns")
            return self._expression()

        def _item(self) -> Item:
            start = self._curr
            expression: exp.Expr
            starred = True
            if self._match(TokenType.STAR):
                expression = self._mark(exp.Star(), start)
            elif self._at_all_of_a_stream():
                table = self._identifier()
                self._advance(2)
                expression = self._mark(exp.Column(this=exp.Star(), table=table), start)
            else:
                expression = self._expression()
                starred = False
            last = self._prev
            alias = None
            if self._match(TokenType.ALIAS):
                alias = self._name("a name after AS")
            elif self._is_name() and self._word() not in _NO_ALIAS:
                if last.token_type == TokenType.NUMBER and last.end + 1 == self._curr.start:
                    span = (last.start, self._curr.end + 1)
                    self._fail_at(f"'{self.sql[slice(*span)]}' is not a number", span)
                alias = self._name("a name")
            if alias and starred:
                self._fail("* cannot be renamed", self._prev, hint="list the columns")
            return Item(expression, alias, (start.start, last.end + 1))

        # ---- FROM ------------------------------------------------------------------------------

        def _join(self) -> FromItem:
            cross = self._match_text_seq("CROSS")
            inner = not cross and self._match_text_seq("INNER")
            if not self._match(TokenType.JOIN):
                self._unexpected("JOIN after " + ("CROSS" if cross else "INNER" if inner else ""))
            item = self._stream("cross" if cross else "inner")
            if self._match(TokenType.ON):
                if cross:
                    self._fail("CROSS JOIN takes no ON", self._prev, "write JOIN … ON …")
                on = self._expression()
                return replace(item, on=on)
            if not cross:
                if self._word() in REFUSED:
                    self._unexpected("ON")
                self._fail(
                    f"JOIN {item.alias.text} has no ON",
                    hint="write the condition after ON, or CROSS JOIN if there is none",
                )
            return item

        def _stream(self, joined: Literal["comma", "inner", "cross"]) -> FromItem:
            start = self._curr
            if self._at(TokenType.L_PAREN):
                if self._next.token_type in (TokenType.SELECT, TokenType.WITH):
                    self._fail("subqueries in FROM are not supported", hint=NO_SUBQUERY)
                self._fail(
                    "parentheses in FROM are not supported",
                    hint="list the streams; the planner chooses the order of the joins",
                )
            source = self._name("a stream")
            if self._at(TokenType.DOT):
                self._fail(
                    "the name of a stream has one part",
                    hint='quote a name that has a dot in it: "db.table"',
                )
            if self._at(TokenType.L_PAREN):
                self._fail("table functions are not supported", start)
            alias: Name | None = None
            window: WindowClause | None = None
            freshness: FreshnessClause | None = None
            end = self._prev
            while True:
                if self._at(TokenType.L_BRACKET):
                    if window:
                        self._fail(f"{source.text} has two windows")
                    window = self._window()
                elif self._word() == "FRESHNESS":
                    if freshness:
                        self._fail(f"{source.text} has two FRESHNESS clauses")
                    freshness = self._freshness()
                elif self._match(TokenType.ALIAS):
                    if alias:
                        self._fail(f"{source.text} has two aliases", self._prev)
                    alias = self._name("a name after AS")
                elif not alias and self._is_name() and self._word() not in _NO_ALIAS:
                    alias = self._name("a name")
                else:
                    break
                end = self._prev
            span = (start.start, end.end + 1)
            return FromItem(source, alias or source, window, freshness, joined, None, span)

        def _window(self) -> WindowClause:
            start = self._curr
            self._advance()
            keys: list[Name] = []
            window: Window
            if self._match_text_seq("PARTITION"):
                if not self._match_text_seq("BY"):
                    self._unexpected("BY after PARTITION")
                keys.append(self._partition_key())
                while self._match(TokenType.COMMA):
                    keys.append(self._partition_key())
                if self._word() not in ("ROWS", "ROW"):
                    self._unexpected(
                        "ROWS", "a partitioned window counts rows: [PARTITION BY k ROWS 10]"
                    )
            if self._match_text_seq("RANGE"):
                if self._match_text_seq("UNBOUNDED"):
                    window = Unbounded()
                else:
                    window = Range(self._milliseconds("RANGE", "[RANGE 5 MINUTES]"))
            elif self._match_text_seq("ROWS") or self._match_text_seq("ROW"):
                if self._match_text_seq("UNBOUNDED"):
                    window = Unbounded()
                else:
                    window = Rows(self._row_count())
            elif self._match_text_seq("UNBOUNDED"):
                window = Unbounded()
            elif self._match_text_seq("NOW"):
                window = Range(0)
            else:
                self._unexpected(
                    "a window",
                    "windows are [RANGE 5 MINUTES], [ROWS 10], [PARTITION BY k ROWS 10], [NOW] "
                    "and [UNBOUNDED]",
                )
            if not self._match(TokenType.R_BRACKET):
                self._unexpected("']' at the end of the window")
            return WindowClause(window, tuple(keys), (start.start, self._prev.end + 1))

        def _partition_key(self) -> Name:
            key = self._name("a column")
            if self._match(TokenType.DOT):
                self._fail(
                    "the columns of PARTITION BY are those of the stream itself",
                    self._prev,
                    hint="write the column without the name of the stream",
                )
            return key

        def _freshness(self) -> FreshnessClause:
            start = self._curr
            self._advance()
            length = self._milliseconds("FRESHNESS", "FRESHNESS 12 MINUTES")
            return FreshnessClause(length, (start.start, self._prev.end + 1))

        def _row_count(self) -> int:
            self._refuse_sign("ROWS")
            token = self._curr
            if not self._match(TokenType.NUMBER):
                self._unexpected("a number of rows", "for example [ROWS 10]")
            if not token.text.isdecimal():
                self._fail("a number of rows is a whole number", token)
            if len(token.text) > 19 or int(token.text) > MOST_ROWS:
                self._fail("that is too many rows", token, "write [UNBOUNDED]")
            if int(token.text) == 0:
                self._fail("a window of no rows holds nothing", token, "write at least [ROWS 1]")
            return int(token.text)

        def _milliseconds(self, what: str, example: str) -> int:
            """``n UNIT`` after ``what``: a whole, positive number of milliseconds."""
            self._refuse_sign(what)
            token = self._curr
            if not self._match(TokenType.NUMBER):
                self._unexpected(f"a length of time after {what}", f"for example {example}")
            number = self._plain_number(token)
            unit = self._unit(f"for example {example}")
            span = (token.start, self._prev.end + 1)
            length = number * unit
            if length == 0:
                hint = "write [NOW] for the tuples of one instant" if what == "RANGE" else None
                self._fail_at(f"{what} must be longer than zero", span, hint)
            if length % 1_000:
                self._fail_at("a length of time is a whole number of milliseconds", span)
            if length > LONGEST * 1_000:
                hint = "write [UNBOUNDED]" if what == "RANGE" else None
                self._fail_at(f"{what} is longer than 285 years", span, hint)
            return int(length / 1_000)

        def _refuse_sign(self, what: str) -> None:
            if self._at(TokenType.DASH, TokenType.PLUS):
                self._fail(f"{what} takes a plain number, with no sign")

        def _plain_number(self, token: Token) -> Decimal:
            if not _PLAIN_NUMBER.fullmatch(token.text):
                self._fail("a length of time is a plain number such as 5 or 1.5", token)
            return Decimal(token.text)

        def _unit(self, example: str) -> int:
            word = self._word()
            if word in MICROSECONDS:
                self._advance()
                return MICROSECONDS[word]
            if word.rstrip("S") in ("MONTH", "YEAR", "QUARTER"):
                self._fail(f"{word} has no fixed length", hint="write it in DAYS")
            if self._at(TokenType.VAR):
                self._fail(f"unknown unit of time '{self._curr.text}'", hint=f"units are {UNITS}")
            return self._unexpected("a unit of time", f"units are {UNITS}; {example}")

        # ---- expressions -----------------------------------------------------------------------

        def _expression(self) -> exp.Expr:
            found = self._parse_disjunction()
            assert found is not None  # atoms never come back empty
            return found

        def _parse_bitwise(self) -> exp.Expr | None:
            return self._parse_term()  # there are no operators on bits

        def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
            if self._word() == "AT" and self._next.text.upper() == "TIME":
                self._fail("AT TIME ZONE is not supported", hint="CAST(x AS TIMESTAMP_NTZ) is UTC")
            return this

        def _parse_unary(self) -> exp.Expr | None:
            start = self._curr
            node = super()._parse_unary()
            return node if node is None else self._mark(node, start)

        def _parse_type(
            self, parse_interval: bool = True, fallback_to_identifier: bool = False
        ) -> exp.Expr | None:
            """An atom: where sqlglot's climbing of precedences ends."""
            start = self._curr
            kind = start.token_type
            if kind == TokenType.L_PAREN:
                return self._parenthesised()
            if kind == TokenType.NUMBER:
                self._advance()
                return self._mark(exp.Literal.number(start.text), start)
            if kind == TokenType.DOT and self._next.token_type == TokenType.NUMBER:
                self._advance(2)
                return self._mark(exp.Literal.number("0." + self._prev.text), start)
            if kind == TokenType.STRING:
                self._advance()
                return self._mark(exp.Literal.string(start.text), start)
            if kind == TokenType.NULL:
                self._advance()
                return self._mark(exp.Null(), start)
            if kind in (TokenType.TRUE, TokenType.FALSE):
                self._advance()
                return self._mark(exp.Boolean(this=kind == TokenType.TRUE), start)
            if kind == TokenType.CASE:
                return self._mark(self._case(), start)
            if self._is_name():
                return self._mark(self._named(), start)
            if kind == TokenType.STAR:
                self._fail("* stands only alone, as A.*, or in COUNT(*)")
            if kind == TokenType.L_BRACKET:
                self._fail(
                    "a window stands in FROM, after its stream",
                    hint="for example FROM A [RANGE 5 MINUTES]",
                )
            if kind == TokenType.SELECT:
                self._fail("subqueries are not supported", hint=NO_SUBQUERY)
            return self._unexpected("an expression")

        def _parenthesised(self) -> exp.Expr:
            start = self._curr
            self._advance()
            if self._at(TokenType.SELECT, TokenType.WITH):
                self._fail("subqueries are not supported", start, NO_SUBQUERY)
            inner = self._expression()
            if self._at(TokenType.COMMA):
                self._fail("row values are not supported", hint="compare the columns one by one")
            self._expect(TokenType.R_PAREN, "')'")
            return self._mark(exp.Paren(this=inner), start)

        def _named(self) -> exp.Expr:
            """A typed literal, an interval, a function call or a column."""
            word = self._word()
            following = self._next.token_type
            if word in ("DATE", "TIMESTAMP") and following == TokenType.STRING:
                self._advance(2)
                return exp.Cast(this=exp.Literal.string(self._prev.text), to=exp.Var(this=word))
            if word == "INTERVAL" and following in _INTERVAL_STARTS:
                return self._interval()
            if word and following == TokenType.L_PAREN:
                return self._call()
            if self._at_all_of_a_stream():
                self._advance(2)
                self._fail("* stands only alone, as A.*, or in COUNT(*)")
            parts = [self._identifier()]
            while self._match(TokenType.DOT):
                parts.append(self._identifier())
            if len(parts) <= 2:
                return exp.Column(this=parts[-1], table=parts[0] if len(parts) == 2 else None)
            return exp.Dot(this=parts[0], expressions=parts[1:])

        def _case(self) -> exp.Expr:
            """``CASE [operand] WHEN … THEN … [ELSE …] END``."""
            self._advance()
            operand = None if self._word() == "WHEN" else self._expression()
            branches: list[exp.Expr] = []
            while self._match_text_seq("WHEN"):
                test = self._expression()
                if not self._match_text_seq("THEN"):
                    self._unexpected("THEN", _CASE_HINT)
                branches.append(exp.If(this=test, true=self._expression()))
            if not branches:
                self._unexpected("WHEN", _CASE_HINT)
            default = self._expression() if self._match_text_seq("ELSE") else None
            if not self._match_text_seq("END"):
                self._unexpected("END", _CASE_HINT)
            return exp.Case(this=operand, ifs=branches, default=default)

        def _call(self) -> exp.Expr:
            name = self._curr
            word = self._word()
            self._advance(2)
            if word in ("CAST", "TRY_CAST"):
                if word == "TRY_CAST":
                    self._fail("TRY_CAST is not supported", name, "write CAST(x AS type)")
                return self._cast()
            if word == "EXTRACT" and self._is_name() and self._next.token_type == TokenType.FROM:
                part = self._name("a part of time")
                self._advance()
                moment = self._expression()
                self._expect(TokenType.R_PAREN, "')'")
                return exp.Extract(this=exp.Var(this=part.text), expression=moment)
            if self._at(TokenType.SELECT, TokenType.WITH):
                self._fail("subqueries are not supported", hint=NO_SUBQUERY)
            if self._at(TokenType.DISTINCT):
                self._fail(
                    f"{word}(DISTINCT …) is not supported",
                    hint="group by the column as well, and count the groups in the reader",
                )
            arguments: list[exp.Expr] = []
            if self._match(TokenType.STAR):
                arguments.append(self._mark(exp.Star(), self._prev))
            elif not self._at(TokenType.R_PAREN):
                arguments.append(self._expression())
                while self._match(TokenType.COMMA):
                    arguments.append(self._expression())
            self._expect(TokenType.R_PAREN, "')'")
            if self._word() in ("OVER", "FILTER", "WITHIN"):
                self._unexpected("the rest of the query")
            call = exp.Anonymous(this=name.text, expressions=arguments)
            call.meta["name_end"] = name.end
            return call

        def _cast(self) -> exp.Expr:
            operand = self._expression()
            if not self._match(TokenType.ALIAS):
                self._unexpected("AS", "for example CAST(A.x AS DOUBLE)")
            start = self._curr
            if not self._is_name():
                self._unexpected("a type", "for example CAST(A.x AS DOUBLE)")
            self._advance()
            name = start.text.upper()
            if name == "DOUBLE":
                self._match_text_seq("PRECISION")
            sizes: list[exp.Expr] = []
            if self._match(TokenType.L_PAREN):
                while True:
                    size = self._curr
                    if not self._match(TokenType.NUMBER):
                        self._unexpected("a number", "for example DECIMAL(10, 2)")
                    sizes.append(self._mark(exp.Literal.number(size.text), size))
                    if not self._match(TokenType.COMMA):
                        break
                self._expect(TokenType.R_PAREN, "')'")
            target = self._mark(exp.Anonymous(this=name, expressions=sizes), start)
            self._expect(TokenType.R_PAREN, "')'")
            return exp.Cast(this=operand, to=target)

        def _interval(self) -> exp.Expr:
            """``INTERVAL 5 SECONDS``, ``INTERVAL '5' SECOND``, ``INTERVAL '1 day 2 hours'``."""
            self._advance()
            sign = -1 if self._match(TokenType.DASH) else 1
            token = self._curr
            if not self._match_set((TokenType.NUMBER, TokenType.STRING)):
                self._unexpected("a length of time", "for example INTERVAL 5 SECONDS")
            if token.token_type == TokenType.STRING and any(c.isalpha() for c in token.text):
                length = self._spelled_out(token)
            else:
                plain = token.text.strip()
                if plain.startswith("-"):
                    sign, plain = -sign, plain[1:].strip()
                if not _PLAIN_NUMBER.fullmatch(plain):
                    self._fail("a length of time is a plain number such as 5 or 1.5", token)
                length = Decimal(plain) * self._unit("for example INTERVAL 5 SECONDS")
            if length % 1:
                self._fail("an interval is a whole number of microseconds", token)
            if abs(length) > LONGEST * 1_000:
                self._fail("an interval is at most 285 years long", token)
            return exp.Interval(
                this=exp.Literal.string(str(int(sign * length))), unit=exp.Var(this="MICROSECOND")
            )

        def _spelled_out(self, token: Token) -> Decimal:
            total, position, text = Decimal(0), 0, token.text
            while position < len(text):
                part = _INTERVAL_PART.match(text, position)
                if not part or part[3].upper() not in MICROSECONDS:
                    self._fail(f"'{text}' is not a length of time", token, f"units are {UNITS}")
                size = Decimal(part[2]) * MICROSECONDS[part[3].upper()]
                total += -size if part[1] == "-" else size
                position = part.end()
            return total

        def _parse_between(self, this: exp.Expr | None) -> exp.Between:
            low = self._parse_bitwise()
            if not self._match(TokenType.AND):
                self._unexpected("AND after BETWEEN", "for example A.x BETWEEN 1 AND 5")
            return exp.Between(this=this, low=low, high=self._parse_bitwise())

        def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
            if not self._match(TokenType.L_PAREN):
                self._unexpected("'(' after IN", "for example A.x IN (1, 2, 3)")
            if self._at(TokenType.SELECT, TokenType.WITH):
                self._fail("subqueries are not supported", self._prev, NO_SUBQUERY)
            values = [self._expression()]
            while self._match(TokenType.COMMA):
                values.append(self._expression())
            self._expect(TokenType.R_PAREN, "')'")
            return exp.In(this=this, expressions=values)

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            negated = self._match(TokenType.NOT)
            if self._at(TokenType.DISTINCT):
                self._fail(
                    f"IS {'NOT ' if negated else ''}DISTINCT FROM is not supported",
                    hint="write a = b OR (a IS NULL AND b IS NULL)"
                    if negated
                    else "write a <> b, and test for NULL with IS NULL",
                )
            if not self._match(TokenType.NULL):
                self._unexpected("NULL after IS", "for example A.x IS NOT NULL")
            test = self._mark(exp.Is(this=this, expression=exp.Null()), None)
            return exp.Not(this=test) if negated else test

        # ---- tokens ----------------------------------------------------------------------------

        def _word(self) -> str:
            """The current token in upper case if it is a word and not quoted, else ''."""
            token = self._curr
            if token.token_type in self.TEXT_MATCH_EXCLUDED_TOKENS or not token:
                return ""
            return token.text.upper() if token.text[:1].isalpha() or token.text[:1] == "_" else ""

        def _at(self, *kinds: TokenType) -> bool:
            return self._curr.token_type in kinds

        def _at_all_of_a_stream(self) -> bool:
            """Whether ``A.*`` comes next."""
            kinds = [t.token_type for t in self._tokens[self._index + 1 : self._index + 3]]
            return self._is_name() and kinds == [TokenType.DOT, TokenType.STAR]

        def _is_name(self) -> bool:
            return self._at(TokenType.VAR, TokenType.IDENTIFIER)

        def _name(self, what: str) -> Name:
            node = self._identifier(what)
            return Name(node.name, (node.meta["start"], node.meta["end"] + 1))

        def _identifier(self, what: str = "a name") -> exp.Identifier:
            token = self._curr
            after_dot = self._prev.token_type == TokenType.DOT
            if not (self._is_name() or (after_dot and self._word())):
                self._unexpected(what)
            if not token.text:
                self._fail("a name cannot be empty")
            if self._at(TokenType.VAR) and not token.text.replace("$", "_").isidentifier():
                self._fail(f"{token.text!r} is not a name", hint="quote a name of other characters")
            self._advance()
            quoted = token.token_type == TokenType.IDENTIFIER
            return self._mark(exp.Identifier(this=token.text, quoted=quoted), token)

        def _mark(self, node: Node, start: Token | None) -> Node:
            """Note the characters from ``start`` to here, unless the node knows them already."""
            if start is not None and "start" not in node.meta:
                node.meta["start"] = start.start
                node.meta["end"] = max(start.end, self._prev.end)
            return node

        def _expect(self, kind: TokenType, what: str) -> None:
            if not self._match(kind):
                self._unexpected(what)

        def _unexpected(self, expected: str, hint: str | None = None) -> NoReturn:
            token = self._curr
            word = self._word()
            if not token:
                self._fail(f"the query ends where {expected} is expected", hint=hint)
            as_name = expected.startswith(("a ", "an "))
            if word in REFUSED and not (as_name and self._next.token_type in _AFTER_COLUMN):
                message, advice = REFUSED[word]
                self._fail(message, hint=advice)
            if hint is None and as_name and word and word not in _STRUCTURE:
                hint = f'{word} is a reserved word; as a name, quote it: "{token.text}"'
            self._fail(f"expected {expected}, found {_shown(self.sql, token)}", hint=hint)

        def _fail(
            self, message: str, token: Token | None = None, hint: str | None = None
        ) -> NoReturn:
            token = token or self._curr
            if token:
                self._fail_at(message, _span(token), hint)
            end = self._prev.end + 1 if self._prev else 0
            self._fail_at(message, (end, end + 1), hint)

        def _fail_at(self, message: str, span: Span, hint: str | None = None) -> NoReturn:
            raise QueryError(message, self.sql, span[0], span[1], hint)

        def raise_error(self, message: str, token: Token = parser.SENTINEL_NONE) -> None:
            self._fail(message[:1].lower() + message[1:], token or None)


_START_HINT = "for example SELECT A.x FROM A [RANGE 5 MINUTES], B [RANGE 5 MINUTES] WHERE A.x = B.x"
_ONE_EMISSION = "ISTREAM, DSTREAM or RSTREAM counts for the whole query; write it once, in front"
_BRACKETS = "a window stands in brackets: A [RANGE 5 MINUTES]"
_CASE_HINT = "for example CASE WHEN A.x > 10 THEN 'large' ELSE 'small' END"
_CLAUSES = "',', JOIN, WHERE, GROUP BY, HAVING, EXCEPT or the end of the query"

_QUERY_STARTS = frozenset({TokenType.SELECT, TokenType.L_PAREN})
_INTERVAL_STARTS = frozenset({TokenType.NUMBER, TokenType.STRING, TokenType.DASH})
_AFTER_BLOCK = frozenset({TokenType.R_PAREN, TokenType.EXCEPT, TokenType.SEMICOLON})
_AFTER_COLUMN = frozenset(
    {
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.ALIAS,
        TokenType.FROM,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.IS,
        TokenType.IN,
        TokenType.LIKE,
        TokenType.BETWEEN,
        TokenType.AND,
        TokenType.OR,
        TokenType.SENTINEL,
    }
)
"""What may follow a column called ``istream`` and cannot follow the word ISTREAM."""
_STRUCTURE = frozenset({"SELECT", "FROM", "WHERE", "ON", "JOIN", "AND", "OR", "AS", "EXCEPT"})
_OPERANDS = frozenset(
    {
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.L_PAREN,
        TokenType.NULL,
        TokenType.DASH,
        TokenType.PLUS,
        TokenType.DOT,
    }
)


def _span(token: Token) -> Span:
    return token.start, token.end + 1


def _shown(text: str, token: Token) -> str:
    return f"'{text[token.start : token.end + 1]}'"


_DIALECT = CQL()


def read(text: str) -> Query:
    """The syntax of ``text``, or a :class:`QueryError`."""
    tokenizer = CQL.Tokenizer(_DIALECT)
    try:
        found = tokenizer.tokenize(text)
    except TokenError:
        done = tokenizer.tokens[-1].end + 1 if tokenizer.tokens else 0
        _refuse_open_end(text, done)
        raise QueryError("the query cannot be read from here on", text, done, done + 1) from None
    _refuse_open_end(text, found[-1].end + 1 if found else 0)
    try:
        return CQL.Parser(dialect=_DIALECT).read(found, text)
    except SqlglotError as error:
        raise QueryError(f"the query cannot be read: {error}", text, 0, 1) from None


def _refuse_open_end(text: str, position: int) -> None:
    """Refuse a quote or comment with no end after ``position``, where the last token ends.

    A comment with no end would else swallow the rest of the query without a word.
    """
    while position < len(text):
        comment = _COMMENT.match(text, position)
        if comment:
            position = comment.end()
            continue
        if text[position] in "'\"`":
            message = f"the {text[position]} that opens here is not closed"
            raise QueryError(message, text, position, position + 1)
        if text.startswith(("/*", "{#"), position):
            message = "the comment that opens here is not closed"
            raise QueryError(message, text, position, position + 2)
        position += 1

"""A test case: a query with its schemas, the pushes of a run, and a plan.

``print(case)`` gives Python code that builds the same case, ready to be pasted as a regression
test.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockWarning
from penstock.query.join_graph import JoinGraph
from penstock.testing.compare import rows_of
from penstock.testing.oracle import AnswerRow, Oracle


@dataclass(frozen=True, eq=False)
class Case:
    """One run of one query.

    ``pushes`` are pushed one after another, then comes ``finish()``. ``watermarks`` is empty, or
    has the host's watermark (milliseconds, or None) for each push. ``plan`` is a plan of the first
    block, in the notation. ``lateness``, ``idle`` and ``policy`` are those of
    :class:`~penstock.testing.oracle.Oracle`. ``features`` names what the generator put
    in, for counting.
    """

    text: str
    schemas: Mapping[str, pa.Schema]
    event_time: str | Mapping[str, str]
    pushes: Sequence[Mapping[str, pa.Table]]
    plan: str
    lateness: int | Mapping[str, int] | None = None
    watermarks: Sequence[int | None] = ()
    features: frozenset[str] = field(default=frozenset())
    idle: int | None = None
    policy: str = "min"

    def graph(self) -> JoinGraph:
        """The parsed query."""
        from penstock.query.parse import parse

        event_time = self.event_time
        if not isinstance(event_time, str):
            event_time = dict(event_time)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PenstockWarning)  # Zones are mixed on purpose.
            return parse(self.text, dict(self.schemas), event_time=event_time)

    def oracle(self, graph: JoinGraph | None = None) -> Oracle:
        """An oracle for the case that has seen nothing yet."""
        return Oracle(graph or self.graph(), self.lateness, self.idle, self.policy)

    def watermark(self, push: int) -> int | None:
        """The host's watermark of push number ``push``."""
        return self.watermarks[push] if self.watermarks else None

    def expected(self, graph: JoinGraph | None = None) -> list[list[AnswerRow]]:
        """What the oracle says leaves in each push, and last what ``finish()`` gives."""
        oracle = self.oracle(graph)
        answers = [oracle.push(p, self.watermark(i)) for i, p in enumerate(self.pushes)]
        return [*answers, oracle.finish()]

    def __str__(self) -> str:
        return as_code(self)


def table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """``rows`` as a table; values as :func:`penstock.testing.python_values.python_values` gives."""
    rows = list(rows)
    columns = [
        pa.array([row[i] for row in rows], schema.field(i).type) for i in range(len(schema.names))
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def as_code(case: Case) -> str:
    """Python code that rebuilds ``case``."""
    names = {source: f"schema_{source}" for source in case.schemas}
    lines = [
        "import datetime",
        "from decimal import Decimal",
        "from math import inf, nan",
        "",
        "import pyarrow as pa",
        "",
        "from penstock.testing.case import Case, table",
        "",
    ]
    for source, schema in case.schemas.items():
        lines.append(f"{names[source]} = {_schema_code(schema)}")
    lines += ["case = Case(", f'    text="""{case.text}""",']
    lines.append(f"    schemas={{{', '.join(f'{s!r}: {n}' for s, n in names.items())}}},")
    event_time = case.event_time if isinstance(case.event_time, str) else dict(case.event_time)
    lines.append(f"    event_time={event_time!r},")
    lines.append("    pushes=[")
    for push in case.pushes:
        lines.append("        {")
        for source, batch in push.items():
            schema = names[source]
            if not batch.schema.equals(case.schemas[source]):
                schema = _schema_code(batch.schema)
            rows = rows_of(batch)
            if len(rows) > 1:
                lines.append(f"            {source!r}: table({schema}, [")
                lines += [f"                {_value_code(row)}," for row in rows]
                lines.append("            ]),")
            else:
                lines.append(f"            {source!r}: table({schema}, {_value_code(rows)}),")
        lines.append("        },")
    lines.append("    ],")
    lines.append(f"    plan={case.plan!r},")
    lines.append(f"    lateness={case.lateness!r},")
    if case.watermarks:
        lines.append(f"    watermarks={list(case.watermarks)!r},")
    if case.idle is not None or case.policy != "min":
        lines.append(f"    idle={case.idle!r}, policy={case.policy!r},")
    lines.append(")")
    return "\n".join(lines)


def _schema_code(schema: pa.Schema) -> str:
    fields = ", ".join(f"({f.name!r}, {type_code(f.type)})" for f in schema)
    return f"pa.schema([{fields}])"


def type_code(kind: pa.DataType) -> str:
    """The Python expression that makes ``kind``."""
    if pa.types.is_timestamp(kind):
        zone = f", {kind.tz!r}" if kind.tz else ""
        return f"pa.timestamp({kind.unit!r}{zone})"
    if pa.types.is_decimal(kind):
        name = "decimal256" if pa.types.is_decimal256(kind) else "decimal128"
        return f"pa.{name}({kind.precision}, {kind.scale})"
    if pa.types.is_dictionary(kind):
        return f"pa.dictionary({type_code(kind.index_type)}, {type_code(kind.value_type)})"
    if pa.types.is_map(kind):
        return f"pa.map_({type_code(kind.key_type)}, {type_code(kind.item_type)})"
    if pa.types.is_fixed_size_list(kind):
        return f"pa.list_({type_code(kind.value_type)}, {kind.list_size})"
    if pa.types.is_large_list(kind):
        return f"pa.large_list({type_code(kind.value_type)})"
    if pa.types.is_list(kind):
        return f"pa.list_({type_code(kind.value_type)})"
    if pa.types.is_struct(kind):
        return f"pa.struct([{', '.join(f'({f.name!r}, {type_code(f.type)})' for f in kind)}])"
    if pa.types.is_fixed_size_binary(kind):
        return f"pa.binary({kind.byte_width})"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return f"pa.{str(kind).partition('[')[0]}({kind.unit!r})"
    simple = {"double": "float64", "float": "float32", "bool": "bool_"}
    name = str(kind).partition("[")[0]
    return f"pa.{simple.get(name, name)}()"


def _value_code(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal):
        return f"Decimal({str(value)!r})"
    if isinstance(value, list):
        return f"[{', '.join(map(_value_code, value))}]"
    if isinstance(value, tuple):
        inside = ", ".join(map(_value_code, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)

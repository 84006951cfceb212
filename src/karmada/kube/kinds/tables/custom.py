"""How custom resources look in a table: the columns come from the CRD.

Every column is a compiled JSONPath; its cell is the first value found, made to fit the column's type. What does not fit
is null, which clients show as <none>; so is a column whose path cannot be read, rather than the whole table failing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from karmada.kube.kinds.tables.columns import AGE, NAME, Cell, Column, Printer, since
from karmada.kube.objects.jsonpath import compile_path
from karmada.kube.objects.types import Obj

Convert = Callable[[Any, float], Any]

_DEFAULT_COLUMN = {
    "name": AGE.name,
    "type": "date",
    "description": AGE.description,
    "jsonPath": ".metadata.creationTimestamp",
}


def _integer(value: Any, now: float) -> int | None:  # noqa: ARG001
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _number(value: Any, now: float) -> float | None:  # noqa: ARG001
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _boolean(value: Any, now: float) -> bool | None:  # noqa: ARG001
    return value if isinstance(value, bool) else None


def _string(value: Any, now: float) -> str:  # noqa: ARG001
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _date(value: Any, now: float) -> str | None:
    return since(value, now) if isinstance(value, str) and value else None


_CONVERSIONS: dict[str, Convert] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "string": _string,
    "date": _date,
}


def _null(obj: Obj, now: float) -> None:
    """Return the cell of a column whose path leads nowhere."""


def _cell(path_text: str, kind: str) -> Cell:
    convert = _CONVERSIONS[kind]
    try:
        path = compile_path(path_text)
    except ValueError:
        return _null

    def cell(obj: Obj, now: float) -> Any:
        value = path.first(obj)
        return None if value is None else convert(value, now)

    return cell


def printer(columns: Sequence[Mapping[str, Any]]) -> Printer:
    """From a CRD version's additionalPrinterColumns; without any, the age is shown."""
    made = [NAME]
    definitions = columns or (_DEFAULT_COLUMN,)
    for column in definitions:
        kind = column.get("type") or "string"
        made.append(
            Column(
                column.get("name") or "",
                _cell(column.get("jsonPath") or "", kind if kind in _CONVERSIONS else "string"),
                column.get("description") or "",
                type=kind,
                format=column.get("format") or "",
            )
        )
    result = Printer(made)
    for definition, column in zip(result.columns[1:], definitions, strict=True):
        definition["priority"] = column.get("priority") or 0
    return result

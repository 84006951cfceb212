"""What a table is made of: a column is a header and a rule that makes its cell, a printer is a row of columns.

A kind's printer is therefore a table itself, one line per column, and the cell rules that many kinds share (names,
ages, selectors, containers) live here. All cells are always made, the wide ones too: the client decides what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karmada.kube.objects import meta
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.times import human_duration, parse_time
from karmada.kube.objects.types import Obj

Cell = Callable[[Obj, float], Any]
"""(object, now) → a JSON scalar."""

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
INVALID = "<invalid>"

_YEAR_ONE = -62_135_596_800.0


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cell: Cell
    description: str
    type: str = "string"
    format: str = ""
    wide: bool = False

    def definition(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": 1 if self.wide else 0,
        }


def _no_conditions(obj: Obj) -> list[Obj]:  # noqa: ARG001
    return []


class Printer:
    """How one kind looks in a table.

    `row` makes all cells at once, for kinds whose cells share work; otherwise every column makes its own.
    """

    __slots__ = ("_cells", "_row", "columns", "conditions")

    columns: list[Obj]
    """The columnDefinitions."""
    conditions: Callable[[Obj], list[Obj]]
    """A row's conditions (completed pods), usually none."""

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        row: Callable[[Obj, float], list[Any]] | None = None,
        conditions: Callable[[Obj], list[Obj]] = _no_conditions,
    ) -> None:
        self.columns = [column.definition() for column in columns]
        self._cells = tuple(column.cell for column in columns)
        self._row = row
        self.conditions = conditions

    def cells(self, obj: Obj, now: float) -> list[Any]:
        if self._row is not None:
            return self._row(obj, now)
        return [cell(obj, now) for cell in self._cells]


# --- reading ---------------------------------------------------------------------------------------------------------


def dig(obj: Any, *path: str) -> Any:
    """Return the value at a path of fields, None as soon as one is absent."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def moment(timestamp: Any) -> float | None:
    """Return the time a timestamp means, None if it is none."""
    try:
        return parse_time(timestamp)
    except (TypeError, ValueError):
        return None


def since(timestamp: Any, now: float) -> str:
    """Return how long ago a timestamp was."""
    if not timestamp:
        return UNKNOWN
    then = moment(timestamp)
    if then is None:
        return INVALID
    return UNKNOWN if then <= _YEAR_ONE else human_duration(now - then)


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Return a metav1.LabelSelector in the form of the command line."""
    if not selector:
        return NONE
    try:
        return str(labels_from(selector)) or NONE
    except ValueError:
        return "<error>"


def labels_text(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def quantity_text(value: Any) -> str:
    """Return the canonical form; what is no quantity is shown as it is."""
    if value is None:
        return "0"
    try:
        return str(Quantity.parse(value))
    except ValueError:
        return str(value)


def with_more(items: Sequence[str], limit: int, *, separator: str = ",", empty: str = "") -> str:
    """Return the first items, and how many there are besides."""
    shown = separator.join(items[:limit])
    if len(items) > limit:
        return f"{shown} + {len(items) - limit} more..."
    return shown or empty


def joined(items: Iterable[Any] | None, empty: str = "") -> str:
    return ",".join(str(item) for item in items or ()) or empty


# --- rules for cells -------------------------------------------------------------------------------------------------


def field(path: str, default: Any = "") -> Cell:
    """Return the value at a dotted path, the default when it is absent or null."""
    keys = tuple(path.split("."))

    def cell(obj: Obj, now: float) -> Any:  # noqa: ARG001
        value = dig(obj, *keys)
        return default if value is None else value

    return cell


def number(path: str) -> Cell:
    return field(path, 0)


def count(path: str) -> Cell:
    """Return how many elements the list or map at a path has."""
    keys = tuple(path.split("."))

    def cell(obj: Obj, now: float) -> int:  # noqa: ARG001
        return len(dig(obj, *keys) or ())

    return cell


def ago(path: str, absent: str = UNKNOWN) -> Cell:
    keys = tuple(path.split("."))

    def cell(obj: Obj, now: float) -> str:
        timestamp = dig(obj, *keys)
        return since(timestamp, now) if timestamp else absent

    return cell


def of(rule: Callable[[Obj], Any]) -> Cell:
    """Return a rule that does not need the time."""
    return lambda obj, now: rule(obj)  # noqa: ARG005


def containers_of(pod_spec: str) -> tuple[Column, Column]:
    """Return the two wide columns of a pod template."""
    keys = (*pod_spec.split("."), "containers")

    def listed(what: str) -> Cell:
        return lambda obj, now: ",".join(each.get(what) or "" for each in dig(obj, *keys) or ())  # noqa: ARG005

    return (
        Column("Containers", listed("name"), "The containers of the pod template", wide=True),
        Column("Images", listed("image"), "The images of the pod template's containers", wide=True),
    )


def selector_column(path: str = "spec.selector") -> Column:
    keys = tuple(path.split("."))
    return Column(
        "Selector",
        lambda obj, now: selector_text(dig(obj, *keys)),  # noqa: ARG005
        "The labels of the pods that belong to the object",
        wide=True,
    )


def _name(obj: Obj, now: float) -> str:  # noqa: ARG001
    return meta.name(obj)


def _age(obj: Obj, now: float) -> str:
    return since(meta.creation_time(obj), now)


def _created(obj: Obj, now: float) -> str:  # noqa: ARG001
    return meta.creation_time(obj) or "0001-01-01T00:00:00Z"


NAME = Column("Name", _name, "The name of the object, unique among its kind in a namespace", format="name")
AGE = Column("Age", _age, "The time since the object was created")
CREATED_AT = Column("Created At", _created, "The moment at which the object was created", type="date")

PLAIN = Printer([NAME, CREATED_AT])
"""For kinds that define no columns."""

"""The table that `get` shows: the servers' own tables, side by side, with a column for where a row comes from.

Servers print resources themselves (a Table); here tables of one resource are put together by the names of their
columns, CLUSTER goes behind the first column and ADOPTION behind the last, and the columns of flags are added around
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from karmada.cli.output.columns import first_line
from karmada.cli.targeting.session import CONTROL_PLANE
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.cli.targeting.sources import Part
    from karmada.kube.client.discovery import Mapping
    from karmada.kube.objects.gvk import GVR

MANAGED = "karmada.io/managed"
_PODS = ("", "pods")


@dataclass(frozen=True, slots=True)
class Look:
    """The columns that flags add."""

    wide: bool = False
    namespaces: bool = False
    kinds: bool = False
    labels: bool = False
    label_columns: tuple[str, ...] = ()
    headers: bool = True
    events: bool = False
    """True if there is a column with the event type."""


class Column(NamedTuple):
    name: str
    priority: int = 0


class Row(NamedTuple):
    cells: tuple[Any, ...]
    """As many as the columns of its table."""
    object: Obj
    source: str


@dataclass(slots=True)
class Table:
    """The rows of one resource from all sources."""

    mapping: Mapping
    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    _order: dict[str, list[int]] = field(default_factory=dict)
    """The columns of a source's cells; a watch sends them only with its first event."""

    @classmethod
    def of(cls, mapping: Mapping, parts: Iterable[Part]) -> Table:
        table = cls(mapping)
        for part in parts:
            table.add(part.source, part.answer)
        return table

    def add(self, source: str, answer: Obj) -> list[Row]:
        """Return the rows that were added; columns not seen before come behind the others."""
        answer = as_table(answer)
        if answer.get("columnDefinitions"):
            self._order[source] = self._learn(answer["columnDefinitions"])
        rows = [self._row(source, row, self._order.get(source, [])) for row in answer.get("rows") or ()]
        self.rows += rows
        return rows

    def _learn(self, definitions: list[Obj]) -> list[int]:
        places = []
        for definition in definitions:
            name = str(definition.get("name", ""))
            names = [column.name for column in self.columns]
            if name not in names:
                self.columns.append(Column(name, int(definition.get("priority") or 0)))
                names.append(name)
            places.append(names.index(name))
        return places

    def _row(self, source: str, row: Obj, places: list[int]) -> Row:
        cells: list[Any] = [None] * len(self.columns)
        for place, cell in zip(places, row.get("cells") or (), strict=False):
            cells[place] = cell
        return Row(tuple(cells), row.get("object") or {}, source)

    @property
    def gvr(self) -> GVR:
        return self.mapping.gvr

    def header(self, look: Look) -> list[str]:
        if not look.headers:
            return []
        shown = [self.columns[place].name.upper() for place in self._places(look)]
        return [
            *(["EVENT"] if look.events else []),
            *(["NAMESPACE"] if look.namespaces and self.mapping.namespaced else []),
            *_inserted(shown, "CLUSTER"),
            *(["ADOPTION"] if self._adoption(look) else []),
            *(label.rpartition("/")[2].upper() for label in look.label_columns),
            *(["LABELS"] if look.labels else []),
        ]

    def line(self, row: Row, look: Look, *, watched: bool = False, event: str = "") -> list[str]:
        metadata = row.object.get("metadata") or {}
        labels = metadata.get("labels") or {}
        shown = [_text(row.cells[place] if place < len(row.cells) else None) for place in self._places(look)]
        if look.kinds and shown:
            shown[0] = f"{kind_name(self.mapping)}/{shown[0]}"
        return [
            *([event] if look.events else []),
            *([metadata.get("namespace", "")] if look.namespaces and self.mapping.namespaced else []),
            *_inserted(shown, row.source),
            *([adoption(row, watched)] if self._adoption(look) else []),
            *(labels.get(label, "<none>") for label in look.label_columns),
            *([_labels(labels)] if look.labels else []),
        ]

    def _places(self, look: Look) -> list[int]:
        return [place for place, column in enumerate(self.columns) if look.wide or column.priority == 0]

    def _adoption(self, look: Look) -> bool:
        """Hidden for pods unless wide: they never come from the control plane."""
        return look.wide or (self.gvr.group, self.gvr.resource) != _PODS


def adoption(row: Row, watched: bool = False) -> str:
    """Return whether the control plane manages it; `-` for its own objects."""
    if row.source == CONTROL_PLANE and not watched:
        return "-"
    labels = (row.object.get("metadata") or {}).get("labels") or {}
    return "Y" if labels.get(MANAGED) == "true" else "N"


def kind_name(mapping: Mapping) -> str:
    """Return the resource with its group: `deployment.apps`."""
    kind = mapping.gvk.kind.lower()
    return f"{kind}.{mapping.gvk.group}" if mapping.gvk.group else kind


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """Return one table for every resource, in the order of their names."""
    by_resource: dict[GVR, list[Part]] = {}
    for part in parts:
        by_resource.setdefault(part.target.mapping.gvr, []).append(part)
    ordered = sorted(by_resource, key=lambda gvr: f"{gvr.group}/{gvr.version}, Resource={gvr.resource}")
    return [Table.of(by_resource[gvr][0].target.mapping, by_resource[gvr]) for gvr in ordered]


def render(tables: Sequence[Table], look: Look) -> str:
    from karmada.cli.output.columns import columns

    texts = []
    for table in tables:
        if table.rows:
            lines = [table.line(row, look) for row in table.rows]
            header = table.header(look)
            texts.append(columns([header, *lines] if header else lines))
    return "\n".join(texts)


def as_table(answer: Obj) -> Obj:
    """Return the table of a server that prints nothing itself: objects by name and age."""
    if answer.get("kind") == "Table":
        return answer
    from karmada.kube.objects.clock import SYSTEM
    from karmada.kube.objects.times import human_duration, parse_time

    items = answer["items"] if isinstance(answer.get("items"), list) else [answer]

    def age(obj: Obj) -> str:
        created = (obj.get("metadata") or {}).get("creationTimestamp")
        return human_duration(SYSTEM.now() - parse_time(created)) if created else "<unknown>"

    return {
        "kind": "Table",
        "columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
        "rows": [{"cells": [(obj.get("metadata") or {}).get("name", ""), age(obj)], "object": obj} for obj in items],
    }


def _inserted(cells: list[str], second: str) -> list[str]:
    return [*cells[:1], second, *cells[1:]]


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return first_line(cell)
    from karmada.kube.objects.go_values import go_value

    return go_value(cell)


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or "<none>"

"""OpenAPI schemas for `explain`: names, types and descriptions of fields.

Schemas refer to one another (`$ref`, or an `allOf` of one when the field has words of its own); arrays stand for what
is in them, and so do maps when nothing else is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
_PREFIX = "#/components/schemas/"


class NoField(LookupError):
    """A path names a field there is not."""

    def __init__(self, name: str) -> None:
        super().__init__(f'field "{name}" does not exist')


@dataclass(frozen=True, slots=True)
class Document:
    """The schemas of one group-version."""

    schemas: Mapping[str, Schema]

    def of_kind(self, group: str, version: str, kind: str) -> Schema | None:
        wanted = {"group": group, "version": version, "kind": kind}
        for schema in self.schemas.values():
            if any(wanted == dict(named) for named in schema.get("x-kubernetes-group-version-kind") or ()):
                return schema
        return None

    def reference(self, schema: Schema) -> str:
        """Return the name of the schema it refers to; "" when it refers to none."""
        target = schema.get("$ref")
        if not target:
            parts = schema.get("allOf") or ()
            target = next((part.get("$ref") for part in parts), None) if len(parts) == 1 else None
        return str(target).removeprefix(_PREFIX) if target else ""

    def resolved(self, schema: Schema) -> Schema:
        name = self.reference(schema)
        return self.schemas.get(name, {}) if name else schema

    def type_of(self, schema: Schema) -> str:
        """`[]Container`, `map[string]string`, `Object`."""
        name = self.reference(schema)
        if name:
            found = self.schemas.get(name, {})
            if found.get("type", "object") != "object":
                return self.type_of(found)
            return name.rpartition(".")[2]
        if "items" in schema:
            return f"[]{self.type_of(schema['items'])}"
        inner = schema.get("additionalProperties")
        if isinstance(inner, Mapping):
            return f"map[string]{self.type_of(inner)}"
        sort = schema.get("type", "object")
        return "Object" if sort == "object" else str(sort)

    def plain_type_of(self, schema: Schema) -> str:
        """Return the type of a field without names of schemas: every one of them is an Object."""
        found = self.resolved(schema)
        if "items" in found:
            return f"[]{self.plain_type_of(found['items'])}"
        inner = found.get("additionalProperties")
        if isinstance(inner, Mapping):
            return f"map[string]{self.plain_type_of(inner)}"
        if "type" not in found:
            is_text = "oneOf" in found or "x-kubernetes-int-or-string" in found or "format" in found
            return "string" if is_text else ""
        if found["type"] == "object":
            return "Object" if found.get("properties") else "map[string]"
        return str(found["type"])

    def content(self, schema: Schema) -> Schema:
        """Return the schema with fields behind references, arrays and maps."""
        found = self.resolved(schema)
        if found.get("properties"):
            return found
        if "items" in found:
            return self.content(found["items"])
        inner = found.get("additionalProperties")
        return self.content(inner) if isinstance(inner, Mapping) and inner is not found else found

    def fields(self, schema: Schema) -> dict[str, Schema]:
        properties: Mapping[str, Schema] = self.content(schema).get("properties") or {}
        return {name: properties[name] for name in sorted(properties)}

    def required(self, schema: Schema) -> frozenset[str]:
        return frozenset(self.content(schema).get("required") or ())

    def step(self, schema: Schema, name: str) -> Schema:
        fields = self.fields(schema)
        if name not in fields:
            raise NoField(name)
        return fields[name]

    def descriptions(self, schema: Schema) -> list[str]:
        """Return the field's own words, then those of what it is."""
        own = str(schema.get("description") or "")
        found = self.resolved(schema)
        general = [] if found is schema else self.descriptions(found)
        if found is schema:
            inner = found.get("items") or found.get("additionalProperties")
            general = self.descriptions(inner) if isinstance(inner, Mapping) else []
        return [text for text in (own, *general) if text]


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most this width, where words allow; lines that were there before stay, and so do blanks in them."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        blanks = ""
        for word in paragraph.split(" "):
            if not word:
                blanks += " "
                continue
            if line and len(line) + len(blanks) + len(word) > width:
                lines.append(line)
                line = word
            else:
                line += blanks + word
            blanks = " "
        lines.append(line)
    return lines

"""A compiled schema: what the API server must know of a field to prune, default, validate, merge and own it.

One Node per place in a type. Built-in kinds come from the published OpenAPI definitions (schema.builtin), custom
resources from their CRD (schema.structural); everything above (decoding, strategic merge, server-side apply,
defaulting, validation) walks Nodes and does not care which. A Node graph may be cyclic (JSONSchemaProps) and is
never changed once it is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = _Unset()


@dataclass(slots=True, eq=False)
class Node:
    """One place in a type.

    `type` is object, array, string, integer, number, boolean or "" (anything goes, e.g. RawExtension). `special` names
    the built-in scalar types with a wire form of their own: quantity, int-or-string, time, micro-time, duration, bytes,
    json (free JSON), fields-v1, and the unions schema-or-array, schema-or-bool, schema-or-strings.
    An object with `properties` is a struct, one with `values` is a map (both may be absent: free-form when `preserve`).

    `omit_empty` names the properties of a built-in struct that are left out when they are empty, `always` those that
    are there even when nobody wrote them (structs held by value), `null` those of them that then are null (times and
    lists), `zeros` the scalars that Go always writes. `alternative` is the struct that a union of a struct
    and something else may hold. `walker` and `protobuf` belong to schema.walk and schema.protobuf_encoder, which keep
    there what they compiled.
    """

    type: str = ""
    format: str = ""
    special: str = ""
    properties: dict[str, Node] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    values: Node | None = None
    items: Node | None = None
    nullable: bool = False
    preserve: bool = False
    embedded: bool = False
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    map_type: str = "granular"
    patch_strategy: frozenset[str] = frozenset()
    patch_merge_key: str = ""
    default: Any = UNSET
    go_type: str = ""
    description: str = ""
    definition: str = ""
    checks: Any = None
    omit_empty: frozenset[str] = frozenset()
    always: tuple[str, ...] = ()
    null: frozenset[str] = frozenset()
    zeros: frozenset[str] = frozenset()
    alternative: Node | None = None
    walker: Any = None
    protobuf: Any = None

    @property
    def is_struct(self) -> bool:
        return bool(self.properties)

    @property
    def atomic(self) -> bool:
        """Owned and merged as one value: no path below it exists for server-side apply."""
        if self.type == "object":
            return self.map_type == "atomic"
        if self.type == "array":
            return self.list_type == "atomic"
        return True

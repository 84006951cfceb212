"""Schemas of the built-in kinds, compiled from the OpenAPI definitions that the kubernetes-validate package ships.

The package has one file of definitions for each Kubernetes version; it is found without importing the package. The
first lookup in a version reads its file once, compiles all of it into Nodes (a few tens of milliseconds) and lets
the parsed text go: nodes carry no descriptions, and equal leaves are one Node, so a version costs little memory. The
text is read again when OpenAPI documents are made. What a field's Go type adds to the published schema (is it left out
when empty, is it always there) comes from the table of schema.wire.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.wire import message_of, rules_of

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_SCHEMA_PROPS = _EXTENSIONS + "JSONSchemaProps"

OBJECT_META = _META + "ObjectMeta"
LIST_META = _META + "ListMeta"
DELETE_OPTIONS = _META + "DeleteOptions"

_SPECIAL: dict[str, dict[str, Any]] = {
    _QUANTITY: {"type": "string", "special": "quantity", "go_type": "resource.Quantity"},
    _INT_OR_STRING: {"special": "int-or-string", "go_type": "intstr.IntOrString"},
    _META + "Time": {"type": "string", "format": "date-time", "special": "time", "go_type": "v1.Time"},
    _META + "MicroTime": {"type": "string", "format": "date-time", "special": "micro-time", "go_type": "v1.MicroTime"},
    _META + "Duration": {"type": "string", "special": "duration", "go_type": "v1.Duration"},
    _META + "FieldsV1": {"special": "fields-v1", "preserve": True, "go_type": "v1.FieldsV1"},
    _RAW: {"special": "json", "preserve": True, "go_type": "runtime.RawExtension"},
    _EXTENSIONS + "JSON": {"special": "json", "preserve": True, "map_type": "atomic", "go_type": "v1.JSON"},
    _SCHEMA_PROPS + "OrArray": {"special": "schema-or-array", "go_type": "v1.JSONSchemaPropsOrArray"},
    _SCHEMA_PROPS + "OrBool": {"special": "schema-or-bool", "go_type": "v1.JSONSchemaPropsOrBool"},
    _SCHEMA_PROPS + "OrStringArray": {"special": "schema-or-strings", "go_type": "v1.JSONSchemaPropsOrStringArray"},
}
"""Definitions that are more than their JSON type says."""

_DEFAULTS: dict[tuple[str, str], Any] = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}
"""Defaults that complete the keys of associative lists; the package leaves them out."""

_RAW_FIXES: dict[str, Obj] = {
    _QUANTITY: {"type": "string"},
    _INT_OR_STRING: {"type": "string", "format": "int-or-string"},
}

_GO_TYPES = {
    ("integer", "int32"): "int32", ("integer", ""): "int64", ("integer", "int64"): "int64", ("number", ""): "float64",
    ("number", "double"): "float64", ("string", ""): "string", ("string", "byte"): "[]uint8", ("boolean", ""): "bool",
}  # fmt: skip


class _Document(dict[str, Obj]):
    """The parsed definitions; a dict of this class can be referred to weakly."""

    __slots__ = ("__weakref__",)


class Definitions:
    """The built-in types of one Kubernetes version."""

    def __init__(self, version: str, path: Path) -> None:
        self.version = version
        self._path = path
        self._nodes: dict[str, Node] = {}
        self._kinds: dict[GVK, str] = {}
        self._document: weakref.ref[_Document] | None = None

    @staticmethod
    def load(version: str = "1.36") -> Definitions:
        """Return the definitions of a minor version, loaded once; raises ValueError when the package lacks it."""
        return _loaded(version)

    def node(self, definition: str) -> Node:
        """Return the compiled definition; raises KeyError for an unknown name."""
        return (self._nodes or self._compile())[definition]

    def node_for(self, gvk: GVK) -> Node | None:
        nodes = self._nodes or self._compile()
        name = self._kinds.get(gvk)
        if name is None and gvk.kind == "DeleteOptions":
            name = DELETE_OPTIONS
        return None if name is None else nodes[name]

    def kinds(self) -> Mapping[GVK, str]:
        """Return the definition of every kind."""
        if not self._nodes:
            self._compile()
        return self._kinds

    def raw(self, definition: str) -> Obj:
        """Return one definition with its descriptions, as OpenAPI v2 has it; use `raws` for many."""
        return self.raws()[definition]

    def raws(self) -> dict[str, Obj]:
        """Return all definitions with their descriptions, references as "#/definitions/NAME".

        Parsed again unless somebody still holds the last answer, so hold it while you work and then drop it.
        """
        document = self._document() if self._document is not None else None
        if document is None:
            document = _Document({name: _cleaned(name, raw) for name, raw in self._read().items()})
            self._document = weakref.ref(document)
        return document

    def _read(self) -> dict[str, Obj]:
        definitions: dict[str, Obj] = orjson.loads(self._path.read_bytes())["$defs"]
        return definitions

    def _compile(self) -> dict[str, Node]:
        raw = self._read()
        nodes = _Compiler(raw).compile()
        for name, definition in raw.items():
            for entry in definition.get("x-kubernetes-group-version-kind", ()):
                self._kinds[GVK(entry["group"], entry["version"], entry["kind"])] = name
        self._nodes = nodes  # last: another thread that sees it sees all
        return nodes


@lru_cache(maxsize=4)
def _loaded(version: str) -> Definitions:
    path = _package_directory() / f"v{version}.0-local" / "_definitions.json"
    if not path.is_file():
        raise ValueError(f"no definitions of Kubernetes {version} (known: {', '.join(versions())})")
    return Definitions(version, path)


def _package_directory() -> Path:
    spec = find_spec("kubernetes_validate")
    if spec is None or not spec.submodule_search_locations:
        raise ValueError("the package kubernetes-validate is not installed")
    return Path(spec.submodule_search_locations[0]) / "kubernetes-json-schema"


@lru_cache(maxsize=1)
def versions() -> tuple[str, ...]:
    """Return the Kubernetes versions that can be loaded, oldest first."""
    found = (path.name[1:].removesuffix(".0-local") for path in _package_directory().glob("v1.*.0-local"))
    return tuple(sorted(found, key=lambda version: int(version.split(".")[1])))


def openapi_name(gvk: GVK) -> str:
    """Return the definition name of a custom resource: its group backwards, then version and kind."""
    return ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


class _Compiler:
    """Definitions to Nodes, in two passes, because definitions refer to one another in cycles.

    The first makes every definition's Node with all but its properties; the second fills the properties in. So a
    reference can copy its target, to add what stands beside the reference, before the target is complete.
    """

    def __init__(self, raw: dict[str, Obj]) -> None:
        self._raw = raw
        self._nodes: dict[str, Node] = {}
        self._shared: dict[tuple[Any, ...], Node] = {}

    def compile(self) -> dict[str, Node]:
        for name, definition in self._raw.items():
            self._nodes[name] = self._head(name, definition)
        for name, definition in self._raw.items():
            properties = self._nodes[name].properties
            for key, schema in definition.get("properties", {}).items():
                properties[key] = self._place(schema, _DEFAULTS.get((name, key), UNSET))
        props = self._nodes.get(_SCHEMA_PROPS)
        for suffix in ("OrArray", "OrBool", "OrStringArray"):
            if _SCHEMA_PROPS + suffix in self._nodes:
                self._nodes[_SCHEMA_PROPS + suffix].alternative = props
        return self._nodes

    def _head(self, name: str, definition: Obj) -> Node:
        special = _SPECIAL.get(name)
        if special is not None:
            return Node(definition=name, **special)
        rules = rules_of(message_of(name))
        return Node(
            type="object",
            definition=name,
            go_type=".".join(name.rsplit(".", 2)[-2:]),
            required=tuple(definition.get("required", ())),
            map_type=definition.get("x-kubernetes-map-type", "granular"),
            omit_empty=frozenset(key for key, rule in rules.items() if rule == "o" and self._can_be_empty(name, key)),
            always=tuple(key for key, rule in rules.items() if rule in ("", "o") and self._is_always(name, key, rule)),
            null=frozenset(key for key, rule in rules.items() if rule in ("", "o") and self._is_null(name, key, rule)),
            zeros=frozenset(key for key, rule in rules.items() if rule == ""),
        )

    def _target(self, name: str, key: str) -> str:
        """Return the definition that a property refers to; empty when it refers to none."""
        schema = self._raw[name].get("properties", {}).get(key, {})
        return _target(schema["$ref"]) if "$ref" in schema else ""

    def _is_struct(self, name: str, key: str) -> bool:
        target = self._target(name, key)
        return bool(target) and target not in _SPECIAL

    def _can_be_empty(self, name: str, key: str) -> bool:
        """Structs are never left out; free JSON has no empty value."""
        target = self._target(name, key)
        return not target or (target in _SPECIAL and not _SPECIAL[target].get("preserve"))

    def _is_always(self, name: str, key: str, rule: str) -> bool:
        return self._is_struct(name, key) or self._target(name, key) == _QUANTITY or self._is_null(name, key, rule)

    def _is_null(self, name: str, key: str, rule: str) -> bool:
        """Return a time held by value, or a list that is never left out: null when nobody wrote it."""
        if (name, key) == (_META + "ObjectMeta", "creationTimestamp"):
            return False
        schema = self._raw[name].get("properties", {}).get(key, {})
        is_list = "items" in schema and rule == "" and not name.endswith("List")
        return is_list or self._target(name, key) in (_META + "Time", _META + "MicroTime")

    def _place(self, schema: Obj, default: Any = UNSET) -> Node:
        if "$ref" in schema:
            return self._reference(schema)
        kind, form = _one(schema.get("type", "")), schema.get("format", "")
        items = self._place(schema["items"]) if "items" in schema else None
        values = self._place(schema["additionalProperties"]) if "additionalProperties" in schema else None
        if items is not None:
            go_type = f"[]{items.go_type}"
        elif values is not None:
            go_type = f"map[string]{values.go_type}"
        else:
            go_type = _GO_TYPES.get((kind, form), kind)
        list_type, list_keys = _list_topology(schema)
        fields: dict[str, Any] = {
            "type": kind,
            "format": form,
            "special": "bytes" if form == "byte" else "",
            "items": items,
            "values": values,
            "list_type": list_type,
            "list_keys": list_keys,
            "map_type": schema.get("x-kubernetes-map-type", "granular"),
            "patch_strategy": _strategy(schema),
            "patch_merge_key": schema.get("x-kubernetes-patch-merge-key", ""),
            "default": default,
            "go_type": go_type,
        }
        key = tuple(id(value) if isinstance(value, Node) else value for value in fields.values())
        node = self._shared.get(key)
        if node is None:
            node = self._shared[key] = Node(**fields)
        return node

    def _reference(self, schema: Obj) -> Node:
        target = self._nodes[_target(schema["$ref"])]
        beside: dict[str, Any] = {}
        if "x-kubernetes-map-type" in schema:
            beside["map_type"] = schema["x-kubernetes-map-type"]
        if "x-kubernetes-patch-strategy" in schema:
            beside["patch_strategy"] = _strategy(schema)
        return replace(target, **beside) if beside else target


def _strategy(schema: Obj) -> frozenset[str]:
    text: str = schema.get("x-kubernetes-patch-strategy", "")
    return frozenset(text.split(",")) if text else frozenset()


def _list_topology(schema: Obj) -> tuple[str, tuple[str, ...]]:
    """Make lists without a type (older versions have many) associative where strategic merge knows a key."""
    list_type = schema.get("x-kubernetes-list-type")
    if list_type is not None:
        return list_type, tuple(schema.get("x-kubernetes-list-map-keys", ()))
    if "merge" not in _strategy(schema):
        return "atomic", ()
    key = schema.get("x-kubernetes-patch-merge-key")
    return ("map", (key,)) if key else ("set", ())


def _target(reference: str) -> str:
    return reference.rpartition("/")[2]


def _one(kind: str | list[str]) -> str:
    """Return the type of a field; the package writes optional ones as [type, "null"]."""
    return kind if isinstance(kind, str) else kind[0]


def _cleaned(name: str, raw: Obj) -> Obj:
    fix = _RAW_FIXES.get(name)
    if fix is not None:
        return {**fix, "description": raw["description"]} if "description" in raw else dict(fix)
    cleaned = _clean(raw)
    for key, schema in cleaned.get("properties", {}).items():
        if key in ("apiVersion", "kind") and "x-kubernetes-group-version-kind" in raw:
            schema.pop("enum", None)
        if (name, key) in _DEFAULTS:
            schema["default"] = _DEFAULTS[name, key]
    return cleaned


def _clean(schema: Obj) -> Obj:
    """In place: the package's own spelling back to that of the API server."""
    if "type" in schema:
        schema["type"] = _one(schema["type"])
    if "$ref" in schema:
        schema["$ref"] = "#/definitions/" + _target(schema["$ref"])
    for child in schema.get("properties", {}).values():
        _clean(child)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            _clean(schema[keyword])
    return schema

"""YAML as Kubernetes reads it: JSON with another spelling.

PyYAML follows YAML 1.1 where Go's reader does not: it turns 12:30 into a number and dates into date objects, and does
not know 1e3. The loader here resolves plain scalars as Go does, refuses duplicate keys, and gives JSON values only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from karmada.kube.objects.types import Obj

try:
    from yaml import CSafeLoader as _Base
except ImportError:
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$")
_TRUE = frozenset({"true", "yes", "on"})
_INT = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_MERGE = "tag:yaml.org,2002:merge"
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")


class _Loader(_Base):
    pass


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""])
_Loader.add_implicit_resolver(_MERGE, re.compile(r"^(?:<<)$"), ["<"])


def _bool(loader: Any, node: Any) -> bool:
    return loader.construct_scalar(node).lower() in _TRUE


def _int(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node).replace("_", "")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _float(loader: Any, node: Any) -> int | float:
    """A whole number is an integer in JSON, however it was written."""
    text: str = loader.construct_scalar(node).lower()
    if text.endswith(("inf", "nan")):
        raise yaml.constructor.ConstructorError(None, None, "not a JSON number", node.start_mark)
    value = float(text)
    if math.isinf(value):
        raise yaml.constructor.ConstructorError(None, None, "number too large", node.start_mark)
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _map(loader: Any, node: Any) -> Obj:
    own: set[str] = set()
    for key_node, _ in node.value:
        if key_node.tag != _MERGE:
            key = _key(loader.construct_object(key_node, deep=True), key_node)
            if key in own:
                message = f'key "{key}" already set in map'
                raise yaml.constructor.ConstructorError(None, None, message, key_node.start_mark)
            own.add(key)
    loader.flatten_mapping(node)
    return {
        _key(loader.construct_object(key_node, deep=True), key_node): loader.construct_object(value_node, deep=True)
        for key_node, value_node in node.value
    }


def _key(value: Any, node: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise yaml.constructor.ConstructorError(None, None, "a key must be a string", node.start_mark)


def _text(loader: Any, node: Any) -> str:
    value: str = loader.construct_scalar(node)
    return value


_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:map", _map)
for _tag in ("timestamp", "binary"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _text)


def load_yaml_all(text: str | bytes) -> Iterator[Any]:
    """The documents of a YAML (or JSON) text as JSON values; ValueError when it is not well-formed."""
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise ValueError(f"error parsing YAML: {error}") from error


def load_yaml(text: str | bytes) -> Any:
    """The first document; None when there is none."""
    return next(load_yaml_all(text), None)


def load_manifests(text: str | bytes) -> list[Obj]:
    """The objects of a manifest file: its documents, with the items of any List taken apart, empty ones left out."""
    found: list[Obj] = []
    for document in load_yaml_all(text):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ValueError(f"not a Kubernetes object: {type(document).__name__}")
        if isinstance(document.get("items"), list) and str(document.get("kind", "")).endswith("List"):
            found += document["items"]
        else:
            found.append(document)
    for obj in found:
        if not obj.get("apiVersion") or not obj.get("kind"):
            raise ValueError(
                "Object 'apiVersion' or 'Kind' is missing" if not obj.get("kind") else "apiVersion not set"
            )
    return found

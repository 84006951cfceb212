"""The variables of admission expressions with their types, and what makes an expression unfit for its place.

Match conditions, policies and their mutations see `object`, `oldObject`, `request`, `namespaceObject` and
`authorizer`; policies with a paramKind also `params`, and policies `variables`. Objects are of unknown type; the rest
is declared, so that an expression that names a field which does not exist is refused when it is written.
"""

from __future__ import annotations

from collections.abc import Mapping

from karmada.kube.schema.cel import types as t
from karmada.kube.schema.cel.authorization import AUTHORIZER
from karmada.kube.schema.cel.program import CompileError, Program
from karmada.kube.schema.cel.types import FieldType, Type

Environment = Mapping[str, Type]

_STRINGS = t.list_of(t.STRING)


def _struct(name: str, fields: Mapping[str, Type]) -> Type:
    return Type(f"kubernetes.{name}", fields={key: FieldType(key, kind) for key, kind in fields.items()})


_KIND = _struct("GroupVersionKind", dict.fromkeys(("group", "version", "kind"), t.STRING))
_RESOURCE = _struct("GroupVersionResource", dict.fromkeys(("group", "version", "resource"), t.STRING))
_USER = _struct(
    "UserInfo",
    {"username": t.STRING, "uid": t.STRING, "groups": _STRINGS, "extra": t.map_of(t.STRING, _STRINGS)},
)
_REQUEST = _struct(
    "AdmissionRequest",
    {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": t.STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": t.STRING,
        "name": t.STRING,
        "namespace": t.STRING,
        "operation": t.STRING,
        "userInfo": _USER,
        "dryRun": t.BOOL,
        "options": t.DYN,
    },
)
_BASE: Environment = {
    "object": t.DYN,
    "oldObject": t.DYN,
    "namespaceObject": t.DYN,
    "request": _REQUEST,
    "authorizer": AUTHORIZER,
}
PATCHES = t.list_of(Type(t.JSON_PATCH))
APPLY_CONFIGURATION = Type(t.PATCH_OBJECT)


def environment(*, params: bool = False, variables: Mapping[str, Type] | None = None) -> Environment:
    """Return what an expression may refer to; `variables` (None: none) are a policy's own, with their types."""
    found = dict(_BASE)
    if params:
        found["params"] = t.DYN
    if variables is not None:
        found["variables"] = _struct("variables", variables)
    return found


def result_type(text: str, known: Environment, *, patches: bool = False) -> Type:
    """Return the type of what an expression evaluates to; raises CompileError."""
    return Program(text, known, patches=patches).type


def fault(text: str, known: Environment, *wanted: Type, patches: bool = False) -> str:
    """Return what is wrong with an expression that must evaluate to one of some types; "" if nothing is."""
    try:
        found = result_type(text, known, patches=patches)
    except CompileError as error:
        return f"compilation failed: {error}"
    if not wanted or any(_is(kind, found) for kind in wanted):
        return ""
    if len(wanted) == 1:
        return f"must evaluate to {wanted[0]} but got {found}"
    return f"must evaluate to one of [{' '.join(map(str, wanted))}]"


def _is(wanted: Type, found: Type) -> bool:
    """Return whether two types are the same; the items of a list that may be empty are not known to be any."""
    empty = wanted.name == found.name == "list" and found.params[0].name == "dyn"
    return empty or wanted == found

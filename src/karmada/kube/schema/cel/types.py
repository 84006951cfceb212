"""The static types of expressions: a name with parameters, or an object with declared fields.

`assign` decides whether a value of one type may stand where another is wanted, binding type parameters (A, B) on the
way; dyn goes with everything. An object type compares by identity: two schemas that look alike are different types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    name: str
    params: tuple[Type, ...] = ()
    fields: Mapping[str, FieldType] | None = field(default=None, compare=False, repr=False)
    """Fields of an object by the name that expressions use."""
    identity: int = 0
    """Identifies an object type."""

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(map(str, self.params))})"


@dataclass(frozen=True, slots=True)
class FieldType:
    name: str
    """The name in the object, which may need escaping in an expression."""
    type: Type


DYN, INT, UINT, DOUBLE, BOOL = Type("dyn"), Type("int"), Type("uint"), Type("double"), Type("bool")
STRING, BYTES, NULL, TYPE, ERROR = Type("string"), Type("bytes"), Type("null"), Type("type"), Type("*error*")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
A, B = Type("A"), Type("B")
QUANTITY, URL, IP, CIDR = Type("kubernetes.Quantity"), Type("kubernetes.URL"), Type("net.IP"), Type("net.CIDR")
SEMVER, FORMAT = Type("kubernetes.Semver"), Type("kubernetes.NamedFormat")

_PARAMS = frozenset({"A", "B"})
_ANY = frozenset({"dyn", "*error*"})


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(item: Type) -> Type:
    return Type("optional_type", (item,))


def object_type(fields: Mapping[str, FieldType]) -> Type:
    return Type("object", fields=fields, identity=id(fields))


class _AnyField(dict[str, FieldType]):
    """Fields of a type that declares none: every name is one, of unknown type."""

    def get(self, name: str, _default: object = None) -> FieldType:
        return FieldType(name, DYN)


PATCH_OBJECT, JSON_PATCH = "Object", "JSONPatch"
"""The types that expressions of mutating policies make: parts of the object by path, and operations."""
_JSON_PATCH = Type(
    JSON_PATCH,
    fields={
        "op": FieldType("op", STRING),
        "path": FieldType("path", STRING),
        "from": FieldType("from", STRING),
        "value": FieldType("value", DYN),
    },
)


def patch_type(name: str) -> Type | None:
    """Return the type of that name in the expressions of mutating policies."""
    if name == JSON_PATCH:
        return _JSON_PATCH
    is_part = name == PATCH_OBJECT or name.startswith(f"{PATCH_OBJECT}.")
    return Type(name, fields=_AnyField()) if is_part else None


Bindings = dict[str, Type]


def assign(wanted: Type, given: Type, bindings: Bindings) -> bool:
    """Return whether `given` may be used as `wanted`; binds wanted's type parameters."""
    if wanted.name in _PARAMS:
        bound = bindings.get(wanted.name)
        if bound is None or bound.name in _ANY:
            bindings[wanted.name] = given
            return True
        return assign(bound, given, {}) or _widen(wanted.name, bound, given, bindings)
    if wanted.name in _ANY or given.name in _ANY:
        return True
    if wanted.name != given.name or wanted.identity != given.identity or len(wanted.params) != len(given.params):
        return False
    return all(assign(w, g, bindings) for w, g in zip(wanted.params, given.params, strict=True))


def _widen(name: str, bound: Type, given: Type, bindings: Bindings) -> bool:
    """Return the type of a parameter: first bound to null it takes the other one, since null compares with anything."""
    if "null" not in (bound.name, given.name):
        return False
    bindings[name] = given if bound.name == "null" else bound
    return True


def substitute(kind: Type, bindings: Bindings) -> Type:
    if kind.name in _PARAMS:
        return bindings.get(kind.name, DYN)
    if not kind.params:
        return kind
    return Type(kind.name, tuple(substitute(p, bindings) for p in kind.params), kind.fields, kind.identity)


def join(kinds: list[Type]) -> Type:
    """Return the type of a list literal's items or of a conditional's branches: the common one, else dyn."""
    if not kinds:
        return DYN
    first = kinds[0]
    return first if all(kind == first for kind in kinds) else DYN

"""JSON patch (RFC 6902): apply a list of operations, and make one from two documents.

Nothing is changed in place: every container on the way to a change is copied once per patch (`_Document.owned`
remembers which ones are private), the rest of the result is shared with the input. As Kubernetes does, negative array
indexes count from the end, a `test` for null passes on a missing member, and the growth that `copy` operations may
cause is bounded. The `Dialect` decides where implementations differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import orjson

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import Invalid, RequestEntityTooLarge
from karmada.kube.objects.types import Obj

MAX_OPERATIONS: Final = 10_000
MAX_COPY_BYTES: Final = 3 * 1024 * 1024
_MISSING: Final = object()


class Dialect(Enum):
    """How operations are handled on which implementations differ."""

    LENIENT = "lenient"
    """kube-apiserver, webhooks, kubectl: a member that is absent reads as null, so `replace` sets it and `copy` copies
    null; so does an operation without a value. What stands before the first slash of a path is ignored. The document
    itself can only be replaced or tested."""
    STRICT = "strict"
    """Override policies: what a path names must be there, an operation needs its value, paths begin with a slash."""


_INDEX: Final = {Dialect.LENIENT: re.compile(r"[+-]?[0-9]+"), Dialect.STRICT: re.compile(r"-?(0|[1-9][0-9]*)")}


class JsonPatchError(Invalid):
    """An operation that cannot be done; `why` says which and why, clients only see Kubernetes' general message."""

    def __init__(self, why: str) -> None:
        super().__init__("the server rejected our request due to an error in our request", details={})
        self.why = why


def check_size(ops: Sequence[Any]) -> None:
    """Refuse a patch with more operations than the API server takes."""
    if len(ops) > MAX_OPERATIONS:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}"
        )


def apply_json_patch(doc: Any, ops: Any, dialect: Dialect) -> Any:
    """Return the patched document.

    Raises ValueError for what is no JSON patch, JsonPatchError for an operation that fails.
    """
    if not isinstance(ops, list) or not all(isinstance(op, dict) for op in ops):
        raise ValueError("a JSON patch must be an array of objects")
    document = _Document(doc, dialect)
    for number, op in enumerate(ops):
        action = _ACTIONS.get(op.get("op")) if isinstance(op.get("op"), str) else None
        if action is None:
            raise JsonPatchError(f"operation {number}: unexpected kind: {op.get('op')!r}")
        action(document, op)
    return document.root


def json_equal(a: Any, b: Any) -> bool:
    """Deep equality of JSON values: unlike Python's, true is not 1; like JSON's, 1 is 1.0."""
    if isinstance(a, dict):
        return isinstance(b, dict) and len(a) == len(b) and all(k in b and json_equal(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(json_equal, a, b))
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def parse_pointer(text: Any, dialect: Dialect = Dialect.STRICT) -> list[str]:
    """Return the unescaped parts of a JSON pointer; none for the document itself."""
    if not isinstance(text, str):
        raise JsonPatchError("operation without a path")
    if not text:
        return []
    before, slash, path = text.partition("/")
    if not slash or (before and dialect is Dialect.STRICT):
        raise JsonPatchError(f"path {text!r} does not start with a slash")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")]


class _Document:
    """The document under change: `root`, the containers that are already private copies, and the bytes copied."""

    def __init__(self, root: Any, dialect: Dialect) -> None:
        self.root = root
        self.lenient = dialect is Dialect.LENIENT
        self.copied = 0
        self._dialect = dialect
        self._owned: dict[int, Any] = {}

    def parts(self, text: Any) -> list[str]:
        return parse_pointer(text, self._dialect)

    def _own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        mine = container.copy()
        self._owned[id(mine)] = mine
        return mine

    def _parent_of(self, parts: list[str], text: str) -> Any:
        """Return the container of the last part, it and everything above it private."""
        self.root = parent = self._own_child(self.root, text)
        for part in parts[:-1]:
            key = self._key_of(parent, part, text)
            parent[key] = child = self._own_child(parent[key], text)
            parent = child
        return parent

    def _own_child(self, value: Any, text: str) -> Any:
        return self._own(_container(value, text))

    def get(self, text: Any) -> Any:
        """Return the value at a path; a missing member of the last container is null where the dialect allows it."""
        value, parts = self.root, self.parts(text)
        for number, part in enumerate(parts):
            parent = _container(value, text)
            if self.lenient and isinstance(parent, dict) and number == len(parts) - 1:
                return parent.get(part)
            value = parent[self._key_of(parent, part, text)]
        return value

    def add(self, text: Any, value: Any) -> None:
        parts = self.parts(text)
        if not parts:
            self._refuse_root("be added to")
            self.root = value
            return
        parent = self._parent_of(parts, text)
        if isinstance(parent, dict):
            parent[parts[-1]] = value
        else:
            parent.insert(self._position(parent, parts[-1], text), value)

    def replace(self, text: Any, value: Any) -> None:
        parts = self.parts(text)
        if not parts:
            self._replace_root(value)
            return
        parent = self._parent_of(parts, text)
        if self.lenient and isinstance(parent, dict):
            parent[parts[-1]] = value
        else:
            parent[self._key_of(parent, parts[-1], text)] = value

    def _replace_root(self, value: Any) -> None:
        """Leniently, only an object or an array replaces the document; any other value is ignored."""
        if not self.lenient or isinstance(value, (dict, list)):
            self.root = value

    def remove(self, text: Any) -> Any:
        parts = self.parts(text)
        if not parts:
            raise JsonPatchError("the whole document cannot be removed")
        parent = self._parent_of(parts, text)
        return parent.pop(self._key_of(parent, parts[-1], text))

    def value(self, op: Obj) -> Any:
        value = op.get("value", None if self.lenient else _MISSING)
        if value is _MISSING:
            raise JsonPatchError(f"operation {op['op']!r} without a value")
        return value

    def _refuse_root(self, what: str) -> None:
        if self.lenient:
            raise JsonPatchError(f"the whole document cannot {what}")

    def source(self, op: Obj) -> list[str]:
        """Return the parts of `from`."""
        parts = self.parts(op.get("from"))
        if not parts:
            self._refuse_root("be moved or copied")
        return parts

    def _position(self, parent: list[Any], part: str, text: str) -> int:
        """Return where `add` inserts: there is one place more than there are elements."""
        return len(parent) if part == "-" else self._index(part, len(parent) + 1, text)

    def _key_of(self, parent: Any, part: str, text: str) -> Any:
        if isinstance(parent, list):
            return self._index(part, len(parent), text)
        if part not in parent:
            raise JsonPatchError(f"path {text!r} does not exist")
        return part

    def _index(self, part: str, length: int, text: str) -> int:
        if not _INDEX[self._dialect].fullmatch(part):
            raise JsonPatchError(f"path {text!r}: {part!r} is no array index")
        number = int(part)
        index = number + length if number < 0 else number
        if not 0 <= index < length:
            raise JsonPatchError(f"path {text!r}: index {part} is out of range")
        return index


def _container(value: Any, text: str) -> Any:
    if not isinstance(value, (dict, list)):
        raise JsonPatchError(f"path {text!r} goes through a value that is no container")
    return value


def _add(doc: _Document, op: Obj) -> None:
    doc.add(op.get("path"), doc.value(op))


def _remove(doc: _Document, op: Obj) -> None:
    doc.remove(op.get("path"))


def _replace(doc: _Document, op: Obj) -> None:
    doc.replace(op.get("path"), doc.value(op))


def _move(doc: _Document, op: Obj) -> None:
    source, target = doc.source(op), doc.parts(op.get("path"))
    if len(target) > len(source) and target[: len(source)] == source:
        raise JsonPatchError(f"{op['from']!r} cannot be moved into itself")
    if not source:
        return
    doc.add(op.get("path"), doc.remove(op.get("from")))


def _copy(doc: _Document, op: Obj) -> None:
    doc.source(op)
    value = doc.get(op.get("from"))
    doc.copied += len(orjson.dumps(value))
    if doc.copied > MAX_COPY_BYTES:
        raise RequestEntityTooLarge(
            f"Unable to complete the copy, the accumulated size increase of copy is {doc.copied}, "
            f"exceeding the limit {MAX_COPY_BYTES}"
        )
    doc.add(op.get("path"), copy_json(value))


def _test(doc: _Document, op: Obj) -> None:
    expected: Any = op.get("value")
    path: Any = op.get("path")
    parts = doc.parts(path)
    if parts and expected is None and not doc.lenient:
        parent = doc.get(path[: path.rindex("/")])
        if isinstance(parent, dict) and parts[-1] not in parent:
            return
    if not json_equal(doc.get(path), expected):
        raise JsonPatchError(f"test of {path!r} failed")


_ACTIONS: Final[dict[Any, Callable[[_Document, Obj], None]]] = {
    "add": _add, "remove": _remove, "replace": _replace, "move": _move, "copy": _copy, "test": _test,
}  # fmt: skip


def diff(a: Any, b: Any) -> list[Obj]:
    """Operations that turn `a` into `b`: objects member by member, arrays after setting equal ends aside."""
    ops: list[Obj] = []
    _diff(a, b, "", ops)
    return ops


def _diff(a: Any, b: Any, path: str, ops: list[Obj]) -> None:
    if a is b or json_equal(a, b):
        return
    if isinstance(a, dict) and isinstance(b, dict):
        ops.extend({"op": "remove", "path": f"{path}/{_escape(key)}"} for key in a if key not in b)
        for key, value in b.items():
            below = f"{path}/{_escape(key)}"
            if key in a:
                _diff(a[key], value, below, ops)
            else:
                ops.append({"op": "add", "path": below, "value": value})
    elif isinstance(a, list) and isinstance(b, list):
        _diff_lists(a, b, path, ops)
    else:
        ops.append({"op": "replace", "path": path, "value": b})


def _diff_lists(a: list[Any], b: list[Any], path: str, ops: list[Obj]) -> None:
    shorter = min(len(a), len(b))
    head = 0
    while head < shorter and json_equal(a[head], b[head]):
        head += 1
    tail = 0
    while tail < shorter - head and json_equal(a[-1 - tail], b[-1 - tail]):
        tail += 1
    both = shorter - tail
    for index in range(head, both):
        _diff(a[index], b[index], f"{path}/{index}", ops)
    ops.extend({"op": "remove", "path": f"{path}/{index}"} for index in range(len(a) - tail - 1, both - 1, -1))
    ops.extend({"op": "add", "path": f"{path}/{index}", "value": b[index]} for index in range(both, len(b) - tail))


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

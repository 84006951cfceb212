"""metadata.managedFields: who owns which field.

One entry per manager, operation (Apply or Update), subresource and, for Update, apiVersion. A write that is not an
apply is compared with what was there before: the paths it changed or added go to the writer's Update entry and leave
every other entry, the paths it removed leave all of them. A write that changes nothing changes no entry.

How a server uses this module, `old` being the stored and `new` the wanted object, both in the request's version,
defaults filled in (see patch.apply for the apply patch):

- create: `entries = update_managers(None, new, node, ...)` after decoding and defaulting, before admission.
- PUT and JSON, merge or strategic patch: `update_managers(old, new, node, ...)` after defaulting, before admission and
  before what the endpoint must not change is put back. `reset` (of the Resource) leaves that part out here.
- /status: the same with subresource="status" and its own `reset`.
- /scale: the same on the parent object with its new replicas and subresource="scale".
- the result goes into metadata.managedFields (`with_entries`); an empty list means: drop the member.
- after mutating admission: `after_admission` puts entries back that a webhook broke.
- before storing: if `same_but_times(old, new)`, nothing happened; store nothing and answer the old object.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.patch.fieldset import LEAF, FieldSet, difference, union, valid, within, without
from karmada.kube.patch.ownership import SYSTEM_META, compare, created, root_place
from karmada.kube.schema.node import Node

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATE_ENTRIES: Final = 10
_ANCIENT: Final = "ancient-changes"
_EMPTY_META: Final[Obj] = {}
_SORTED: Final = orjson.OPT_SORT_KEYS
_INVALID_AFTER_ADMISSION: Final = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: "
)


_SYSTEM: Final[FieldSet] = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {f"f:{key}": LEAF for key in SYSTEM_META},
}
"""Type and identity of an object, which nobody owns."""


@dataclass(frozen=True, slots=True)
class Reset:
    """The part of an object that an endpoint does not write, hence does not own."""

    exclude: FieldSet = field(default_factory=lambda: _SYSTEM)
    """These paths and what is below them."""
    only: FieldSet = field(default_factory=dict)
    """When not empty: everything but these paths and what is below them."""

    def keep(self, fields: FieldSet) -> FieldSet:
        if self.only:
            return within(fields, self.only)
        kept = without(fields, self.exclude)
        if kept.get("f:metadata") == LEAF:  # a configuration that says nothing in it
            return {key: below for key, below in kept.items() if key != "f:metadata"}
        return kept


_STATUS: Final[FieldSet] = {"f:status": LEAF}
SYSTEM: Final = Reset()
"""What nobody owns."""
MAIN: Final = Reset(exclude=_SYSTEM | _STATUS)
"""What a write to the object itself does not own where it has a status of its own endpoint."""
CUSTOM_STATUS: Final = Reset(only=_STATUS)
"""What a write to /status of a custom resource does not own."""


@cache
def status_reset(keeps: tuple[str, ...] = ()) -> Reset:
    """Return what a write to /status does not own: the spec, and the metadata that it `keeps`."""
    metadata = _SYSTEM["f:metadata"] | {f"f:{key}": LEAF for key in keeps}
    return Reset(exclude=_SYSTEM | {"f:spec": LEAF, "f:metadata": metadata})


def update_managers(
    old: Obj | None,
    new: Obj,
    node: Node | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    custom: bool = False,
    reset: Reset = SYSTEM,
) -> list[Obj]:
    """Return the managedFields of `new`, written by `manager` over `old` (None: a create).

    The stored list itself if nothing changed.
    """
    entries = _entries_to_start_with(old, new, subresource)
    if old is not None and not entries:
        return entries  # Ownership of this object is not tracked; the first apply will begin with it.
    root = root_place(node, custom)
    me = (manager or "unknown", UPDATE, api_version, subresource)
    try:
        changed, removed = (created(root, new), LEAF) if old is None else compare(root, old, new)
        changed = reset.keep(changed) if changed else changed
        removed = reset.keep(removed) if removed else removed
        if entries and (changed or removed):
            return _moved(entries, changed, removed, me, now)
        return [make_entry(*me, now, changed)] if changed else entries
    except RecursionError:
        return entries  # Too deep for a field set; whether it may be stored is decided elsewhere.


def _moved(
    entries: list[Obj], changed: FieldSet, removed: FieldSet, me: tuple[str, str, str, str], now: str
) -> list[Obj]:
    """Add the changed paths to the writer's entry; remove them and the removed ones from all other entries."""
    mine: Obj | None = None
    out = []
    for entry in entries:
        if mine is None and entry.get("manager") == me[0] and identity(entry) == me:
            mine = entry
            continue
        left = release(entry, changed, removed)
        if left is not None:
            out.append(left)
    kept = None if mine is None else release(mine, LEAF, removed)
    if changed:
        out.append(make_entry(*me, now, changed if kept is None else union(kept["fieldsV1"], changed)))
    elif kept is not None:
        out.append(kept)
    return sort_entries(_cap(out) if len(out) > MAX_UPDATE_ENTRIES else out)


_interned: dict[bytes, FieldSet] = {}
_MAX_INTERNED: Final = 2048
_MAX_INTERNED_BYTES: Final = 8192


def intern_fields(fields: FieldSet) -> FieldSet:
    """Return the one shared copy of a set: objects of a kind have the same few, and each is kilobytes of dicts."""
    try:
        key = orjson.dumps(fields)
    except TypeError as error:
        raise RecursionError(str(error)) from None
    found = _interned.get(key)
    if found is not None:
        return found
    if len(key) <= _MAX_INTERNED_BYTES:
        if len(_interned) >= _MAX_INTERNED:
            _interned.clear()
        _interned[key] = fields
    return fields


def make_entry(manager: str, operation: str, api_version: str, subresource: str, now: str, fields: FieldSet) -> Obj:
    """Return an entry; without a time (`now` empty, or written through /scale) as Kubernetes has it."""
    entry: Obj = {
        "manager": manager or "unknown",
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": intern_fields(fields),
    }
    if subresource:
        entry["subresource"] = subresource
    if now and subresource != "scale":
        entry["time"] = now
    return entry


def identity(entry: Obj) -> tuple[str, str, str, str]:
    """Return the identity of an entry: that of an applier does not include its apiVersion."""
    operation = entry.get("operation", "")
    version = "" if operation == APPLY else entry.get("apiVersion", "")
    return entry.get("manager", ""), operation, version, entry.get("subresource", "")


def entries_of(obj: Obj | None) -> list[Obj]:
    """Return the managedFields of an object; an empty list when it has none."""
    entries: list[Obj] = ((obj or _EMPTY_META).get("metadata") or _EMPTY_META).get("managedFields") or []
    return entries


def with_entries(obj: Obj, entries: list[Obj]) -> Obj:
    """Return the object with these managedFields; itself if it has them already."""
    metadata = obj.get("metadata") or _EMPTY_META
    if metadata.get("managedFields") is entries or not (entries or metadata.get("managedFields")):
        return obj
    metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**obj, "metadata": metadata}


def _entries_to_start_with(old: Obj | None, new: Obj, subresource: str) -> list[Obj]:
    """Return what the client sent, if it may and did send a valid list, else what is stored."""
    stored = entries_of(old)
    if subresource:
        return stored
    sent = (new.get("metadata") or _EMPTY_META).get("managedFields")
    if sent is None or sent is stored or sent == stored:
        return stored
    if is_wipe(sent):
        return []
    return sent if invalid_entry(sent) is None else stored


def is_wipe(sent: Any) -> bool:
    """`[]` or `[{}]`: reset the managedFields."""
    return isinstance(sent, list) and sent in ([], [{}])


def invalid_entry(entries: Any) -> str | None:
    """Why this cannot be a list of managedFields entries; None: it can."""
    if not isinstance(entries, list):
        return "managedFields must be a list"
    for entry in entries:
        why = _why_invalid(entry)
        if why is not None:
            return why
    return None


def _why_invalid(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "managedFields entry must be an object"
    if entry.get("operation") not in (APPLY, UPDATE):
        return f"invalid operation type: {entry.get('operation', '')}"
    if not entry.get("apiVersion"):
        return "apiVersion must not be empty"
    if entry.get("fieldsType") != "FieldsV1":
        return f"invalid fieldsType: {entry.get('fieldsType', '')}"
    return None if valid(entry.get("fieldsV1", {})) else "invalid fieldsV1"


def release(entry: Obj, changed: FieldSet, removed: FieldSet) -> Obj | None:
    """Return the entry without these paths; itself if it had none of them, None if nothing is left."""
    fields = entry.get("fieldsV1") or LEAF
    left = difference(fields, changed) if changed else fields
    if removed:
        left = difference(left, removed)
    if not left:
        return None
    return entry if left is fields else {**entry, "fieldsV1": intern_fields(left)}


def _age(entry: Obj) -> str:
    return entry.get("time") or ""


def _cap(entries: list[Obj]) -> list[Obj]:
    """Fold the oldest Update entries into one per version when there are too many.

    Going from the oldest on, the second of a version and those after it join the bucket of that version, which the
    first one becomes; its time is that of the youngest in it.
    """
    updates = [entry for entry in entries if entry.get("operation") == UPDATE]
    surplus = len(updates) - MAX_UPDATE_ENTRIES
    if surplus <= 0:
        return entries
    updates.sort(key=lambda entry: (_age(entry), *identity(entry)))
    ancient = {e["apiVersion"]: e for e in updates if e.get("manager") == _ANCIENT and not e.get("subresource")}
    first: dict[str, Obj] = {}
    gone: set[int] = set()
    for entry in updates:
        if surplus == 0:
            break
        version = entry["apiVersion"]
        if version not in first:
            first[version] = entry
            continue
        bucket = ancient.get(version) or first[version]
        if bucket is entry:
            continue
        fields = union(bucket["fieldsV1"], entry["fieldsV1"])
        ancient[version] = make_entry(_ANCIENT, UPDATE, version, "", _age(entry), fields)
        gone |= {id(bucket), id(entry)}
        surplus -= 1
    kept = [entry for entry in entries if id(entry) not in gone]
    return kept + [bucket for bucket in ancient.values() if not any(bucket is entry for entry in entries)]


def sort_entries(entries: list[Obj]) -> list[Obj]:
    """Apply before Update, then by time, manager, version and subresource."""
    if len(entries) > 1:
        entries.sort(
            key=lambda e: (
                e.get("operation", ""),
                e.get("time") or "",
                e.get("manager", ""),
                e.get("apiVersion", ""),
                e.get("subresource", ""),
            )
        )
    return entries


def same_value(old: Any, new: Any) -> bool:
    """Equal as JSON: to Python true is 1, to JSON it is not."""
    if old != new:
        return False
    return old is new or orjson.dumps(old, option=_SORTED) == orjson.dumps(new, option=_SORTED)


def same_but_times(old: Obj, new: Obj) -> bool:
    """Return whether two objects differ in nothing but the times of their managedFields."""
    if old is new:
        return True
    if len(old) != len(new):
        return False
    for key, value in new.items():
        if key != "metadata" and (key not in old or not same_value(old[key], value)):
            return False
    return _same_metadata(old.get("metadata") or {}, new.get("metadata") or {})


def _same_metadata(old: Obj, new: Obj) -> bool:
    if len(old) - ("managedFields" in old) != len(new) - ("managedFields" in new):
        return False
    for key, value in new.items():
        if key != "managedFields" and (key not in old or old[key] != value):
            return False
    before, now = old.get("managedFields") or [], new.get("managedFields") or []
    return before == now or _timeless(before) == _timeless(now)


def _timeless(entries: list[Obj]) -> dict[tuple[str, ...], Obj]:
    """Return an entry's identity without its time, by which entries are also sorted."""
    return {identity(entry): {key: value for key, value in entry.items() if key != "time"} for entry in entries}


def after_admission(before: list[Obj], obj: Obj) -> tuple[Obj, str]:
    """Return the admitted object, with entries that admission broke put back, and a warning then (else "")."""
    sent = (obj.get("metadata") or _EMPTY_META).get("managedFields")
    if sent is None or sent is before:
        return obj, ""
    why = invalid_entry(sent)
    return (obj, "") if why is None else (with_entries(obj, before), _INVALID_AFTER_ADMISSION + why)

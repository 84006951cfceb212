"""Server-side apply: merge a manager's configuration into the live object, and track the owners of its fields.

The configuration is everything that its manager wants to own. It is merged into the live object. A path that the
manager owned before and no longer sets is removed, unless another manager owns it too. A path that the merge changes
while another manager owns it is a conflict: an error unless forced, and then the other loses it. Equal values are no
conflict: both own the path.

How a server handles an apply patch, in the request's version:

1. `merged = apply(live or None, config, node, ...)`; errors are ApiErrors to answer with. `merged is live`: nothing
   changed.
2. Fill in defaults in a copy of `merged`, run admission, validation and storage as for a PUT (or a create). Do not
   call `update_managers`: what defaults and admission add has no owner. Then `after_admission` and `same_but_times` as
   for any other write.
3. /status: the same with subresource="status" and its `reset`. /scale: build a configuration of the parent that
   holds nothing but apiVersion, kind, name, namespace and the replicas, and apply it with subresource="scale".
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import orjson

from karmada.kube.objects.errors import ApiError, BadRequest, Conflict
from karmada.kube.objects.gvk import GroupVersion
from karmada.kube.objects.types import Obj
from karmada.kube.patch.fieldset import FieldSet, all_of, difference, intersection, is_member, member_key, paths, text
from karmada.kube.patch.managedfields import (
    APPLY,
    SYSTEM,
    UPDATE,
    Reset,
    entries_of,
    identity,
    make_entry,
    release,
    sort_entries,
    with_entries,
)
from karmada.kube.patch.ownership import KEYED, STRUCT, Place, applied, collapse, compare, created, root_place
from karmada.kube.patch.typed import check, drop_nulls, merge_objects
from karmada.kube.schema.node import Node

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_MAX_ANNOTATIONS: Final = 256 * 1024
_HTML_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}

Conflicts: TypeAlias = list[tuple[Obj, FieldSet]]


def apply(
    live: Obj | None,
    config: Obj,
    node: Node | None,
    *,
    manager: str,
    api_version: str,
    now: str,
    force: bool = False,
    subresource: str = "",
    custom: bool = False,
    reset: Reset = SYSTEM,
) -> Obj:
    """Return the live object (None: there is none yet) with `config` applied, managedFields included.

    The result is `live` itself if that changes nothing.
    """
    try:
        _check_config(config, node, api_version, custom)
        job = _Job(root_place(node, custom), config, manager, api_version, now, subresource, reset)
        return job.create() if live is None else job.change(live, force)
    except RecursionError:
        raise BadRequest("exceeded max depth") from None


def _check_config(config: Obj, node: Node | None, api_version: str, custom: bool) -> None:
    version = config.get("apiVersion", "")
    if version != api_version:
        raise BadRequest(
            f"Incorrect version specified in apply patch. Specified patch version: {version}, expected: {api_version}"
        )
    metadata = config.get("metadata") or {}
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    errors = check(node, config, custom=custom)
    if errors:
        group, version = GroupVersion.parse(api_version)
        named = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}" if isinstance(metadata, dict) else "/"
        what = errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {error}" for error in errors)])
        raise ApiError(
            f"failed to create typed patch object ({named}; {group}/{version}, Kind={config.get('kind', '')}): {what}"
        )


def _collapsed(root: Place, entry: Obj) -> Obj:
    fields = entry["fieldsV1"]
    left = collapse(root, fields)
    return entry if left is fields else {**entry, "fieldsV1": left}


class _Job:
    """One apply request."""

    def __init__(
        self,
        root: Place,
        config: Obj,
        manager: str,
        api_version: str,
        now: str,
        subresource: str,
        reset: Reset,
    ) -> None:
        self.root = root
        self.config = config
        self.manager = manager
        self.api_version = api_version
        self.now = now
        self.subresource = subresource
        self.reset = reset

    def create(self) -> Obj:
        merged, entries = self.run({"apiVersion": self.api_version, "kind": self.config.get("kind", "")}, [], False)
        return with_entries(merged, entries)

    def change(self, live: Obj, force: bool) -> Obj:
        stored = entries_of(live)
        entries = [_collapsed(self.root, entry) for entry in stored if entry.get("fieldsV1")]
        merged, entries = self.run(live, entries or self.entries_before_first_apply(live), force)
        result = with_entries(merged, stored if entries == stored else entries)
        return _sync_last_applied(result, self.config) if self.manager == KUBECTL else result

    def entries_before_first_apply(self, live: Obj) -> list[Obj]:
        """For an object without managedFields: one manager owns what is there, so that taking it over conflicts."""
        fields = self.reset.keep(created(self.root, live))
        if not fields:
            return []
        return [make_entry(_BEFORE_FIRST_APPLY, UPDATE, self.api_version, self.subresource, self.now, fields)]

    def run(self, live: Obj, entries: list[Obj], force: bool) -> tuple[Obj, list[Obj]]:
        me = (self.manager or "unknown", APPLY, "", self.subresource)
        previous = next((entry for entry in entries if identity(entry) == me), None)
        others = [entry for entry in entries if entry is not previous]
        everything = applied(self.root, self.config)
        merged = merge_objects(self.root, live, self.config)
        if previous is not None and difference(previous["fieldsV1"], everything):
            merged = self._prune(merged, previous["fieldsV1"], [everything, *(e["fieldsV1"] for e in others)])
        changed, removed = compare(self.root, live, merged)
        changed, removed = self.reset.keep(changed), self.reset.keep(removed)
        conflicts = _conflicts(others, changed)
        if conflicts and not force:
            self._refuse(conflicts, live)
        left = [release(entry, changed, removed) for entry in others]
        if b"null" in orjson.dumps(self.config):  # A quick look, seldom true: a live object has no null to drop.
            merged = drop_nulls(self.root, merged)
        mine = self._entry(previous, self.reset.keep(everything), merged == live)
        survivors = [entry for entry in [*left, mine] if entry is not None]
        return (live if merged == live else merged), sort_entries(survivors)

    def _entry(self, previous: Obj | None, fields: FieldSet, unchanged: bool) -> Obj | None:
        """Return the applier's entry; one that changed nothing in the object has no new time."""
        if not fields:
            return None
        if (
            unchanged
            and previous is not None
            and previous["fieldsV1"] == fields
            and previous["apiVersion"] == self.api_version
        ):
            return previous
        now = self.now if not unchanged else "" if previous is None else previous.get("time", "")
        return make_entry(self.manager, APPLY, self.api_version, self.subresource, now, fields)

    def _prune(self, merged: Obj, last: FieldSet, owned: list[FieldSet]) -> Obj:
        pruned = _remove(self.root, merged, last, all_of(owned))
        return pruned if isinstance(pruned, dict) else merged

    def _refuse(self, conflicts: Conflicts, live: Obj) -> None:
        if self.manager == KUBECTL:
            allowed = _last_applied_and_unchanged(self.root, live, self.api_version)
            rest = ((entry, difference(fields, allowed)) for entry, fields in conflicts)
            conflicts = [(entry, fields) for entry, fields in rest if fields]
        if conflicts:
            raise conflict_error(conflicts)


def _remove(place: Place, value: Any, last: FieldSet, still: FieldSet) -> Any:
    """Return the value without the paths of `last` that have no owner any more; None if nothing is left of it.

    A declared field counts as held while anything below it is. A map key or list item must be held itself: who owns
    only a field inside it does not keep it, so an applier can remove the items it added. A path is removed with
    everything below it.
    """
    if isinstance(value, dict):
        return _remove_members(place, value, last, still)
    if value.__class__ is list and last:
        return _remove_items(place, value, last, still)
    return value


def _remove_members(place: Place, value: Obj, last: FieldSet, still: FieldSet) -> Obj | None:
    out: Obj | None = None
    for element, below in last.items():
        name = element[2:]
        if element[0] != "f" or name not in value:
            continue
        declared = place.kind == STRUCT and place.declares(name)
        holders = still.get(element)
        if _is_removed(below, holders, declared):
            left = None
        else:
            child = place.below(name)
            left = value[name] if child is None or not below else _remove(child, value[name], below, holders or {})
            if left is value[name]:
                continue
            if left is None and is_member(holders):
                left = type(value[name])()  # Empty, but still owned.
        out = dict(value) if out is None else out
        if left is None:
            del out[name]
        else:
            out[name] = left
    return value if out is None else (out or None)


def _remove_items(place: Place, value: list[Any], last: FieldSet, still: FieldSet) -> list[Any] | None:
    out: list[Any] = []
    for item in value:
        element = place.key_of(item) if place.kind == KEYED and item.__class__ is dict else member_key(item)
        below = last.get(element)
        holders = still.get(element)
        if below is None:
            out.append(item)
        elif not _is_removed(below, holders, False):
            if place.items is not None and below:
                keys = {f"f:{name}" for name, _ in place.keys}
                below = {key: sub for key, sub in below.items() if key not in keys}
                item = _remove(place.items, item, below, holders or {})
            out.append(item)
    if len(out) == len(value) and all(a is b for a, b in zip(out, value, strict=True)):
        return value
    return out or None


def _is_removed(last: FieldSet, holders: FieldSet | None, declared: bool) -> bool:
    if not (declared or is_member(last)):
        return False
    return holders is None or not (declared or is_member(holders))


def _conflicts(others: list[Obj], changed: FieldSet) -> Conflicts:
    found = []
    for entry in others:
        fields = intersection(entry["fieldsV1"], changed)
        if fields:
            found.append((entry, fields))
    return found


def conflict_error(conflicts: Conflicts) -> Conflict:
    """Return the 409 that names every path and its owner."""
    listed: list[tuple[str, list[str]]] = []
    for entry, fields in sorted(conflicts, key=lambda conflict: _sort_name(conflict[0])):
        listed.append((_owner(entry), [text(path) for path in paths(fields)]))
    count = sum(len(found) for _, found in listed)
    if count == 1:
        message = f"Apply failed with 1 conflict: conflict with {listed[0][0]}: {listed[0][1][0]}"
    else:
        lines = [line for owner, found in listed for line in (f"conflicts with {owner}:", *(f"- {p}" for p in found))]
        message = f"Apply failed with {count} conflicts: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path}
        for owner, found in listed
        for path in found
    ]
    return Conflict(message, details={"causes": causes})


def _sort_name(entry: Obj) -> str:
    manager, operation, version, subresource = identity(entry)
    named = {"manager": manager, "operation": operation, "apiVersion": version, "subresource": subresource}
    return orjson.dumps({key: value for key, value in named.items() if value}).decode()


def _owner(entry: Obj) -> str:
    owner = orjson.dumps(entry.get("manager", "")).decode()
    if entry.get("subresource"):
        owner += f" with subresource {orjson.dumps(entry['subresource']).decode()}"
    return owner if entry.get("operation") == APPLY else f"{owner} using {entry.get('apiVersion', '')}"


def _last_applied_and_unchanged(root: Place, live: Obj, api_version: str) -> FieldSet:
    """Return the paths of a client-side `kubectl apply` that did not change since: kubectl may take them over."""
    annotation = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if not annotation:
        return {}
    try:
        last = orjson.loads(annotation)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != api_version:
        return {}
    changed, removed = compare(root, last, live)
    return difference(difference(applied(root, last), changed), removed)


def _sync_last_applied(result: Obj, config: Obj) -> Obj:
    """Update the annotation of client-side apply, if there is one, so that a user may return to client-side apply."""
    metadata = result.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return result
    wanted = (config.get("metadata") or {}).get("annotations")
    said: Obj = {**config, "metadata": dict(config.get("metadata") or {})}
    if wanted:
        said["metadata"]["annotations"] = {key: value for key, value in wanted.items() if key != LAST_APPLIED}
    value = orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode().translate(_HTML_ESCAPES) + "\n"
    if annotations[LAST_APPLIED] == value:
        return result
    annotations = {**annotations, LAST_APPLIED: value}
    if sum(len(key.encode()) + len(item.encode()) for key, item in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**result, "metadata": {**metadata, "annotations": annotations}}

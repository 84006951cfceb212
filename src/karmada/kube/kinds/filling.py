"""In-place helpers for defaulting. Absent and null are equal."""

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj


def part(holder: Obj, key: str) -> Obj:
    """Return the object under this key, made when there is none."""
    found: Obj | None = holder.get(key)
    if found is None:
        found = holder[key] = {}
    return found


def fill(holder: Obj, **defaults: Any) -> None:
    for key, value in defaults.items():
        if holder.get(key) is None:
            holder[key] = value


def fill_text(holder: Obj, **defaults: str) -> None:
    """Fill in texts; an empty string counts as absent."""
    for key, value in defaults.items():
        if not holder.get(key):
            holder[key] = value


def set_zero(obj: Obj, *keys: str) -> None:
    """Make a fresh status with the counters that are printed even when they are zero."""
    obj["status"] = dict.fromkeys(keys, 0)


def take_metadata(live: Obj, body: Obj) -> None:
    """Take the labels, annotations, finalizers and owners of a body."""
    given, meta = body.get("metadata") or {}, live["metadata"]
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if given.get(key):
            meta[key] = given[key]
        else:
            meta.pop(key, None)


def take_version(live: Obj, body: Obj) -> None:
    """Take the resourceVersion (and uid) of a body as a precondition; without any the write is unconditional."""
    given = body.get("metadata") or {}
    live["metadata"].pop("resourceVersion", None)
    for key in ("resourceVersion", "uid"):
        if given.get(key):
            live["metadata"][key] = given[key]

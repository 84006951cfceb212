"""The stored form of default objects, remembered for the next new cluster of this process.

What the write path makes of a default object (defaults, managedFields) is the same in all clusters of one Kubernetes
version, but for its uid and times. So the first server of a process creates it through the API, and the others write
the remembered bytes with a uid and times of their own: a fleet of simulated clusters starts in half of the time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias

import orjson

from karmada.kube.objects.codec import with_revision
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.entry import encode_value

_UID, _TIME = "\ue000uid\ue000", "\ue000time\ue000"
"""Placeholders; no default object has characters of the private-use area."""


class Form:
    """The stored form of a default object after its creation, but for its uid and times."""

    def __init__(self, wanted: Obj, value: bytes) -> None:
        self.wanted = wanted
        self._value = value

    def value(self, uid: str, time: str) -> bytes:
        """Return the bytes to store."""
        return self._value.replace(_UID.encode(), uid.encode()).replace(_TIME.encode(), time.encode())

    def object(self, uid: str, time: str) -> Obj:
        """Return what these bytes mean; all but metadata and conditions is the same in all clusters, and read-only."""
        return _stamped(self._parsed, uid, time)

    @cached_property
    def _parsed(self) -> Obj:
        """With a resourceVersion where the watch cache puts it, so that both are written alike."""
        parsed: Obj = orjson.loads(with_revision(self._value, 0))
        return parsed


_Key: TypeAlias = tuple[str, tuple[str, str, str]]
_forms: dict[_Key, list[Form]] = {}
"""Forms by Kubernetes version, kind, namespace and name: one for each object of that name that was wanted."""


def remember(version: str, wanted: Obj, stored: Obj) -> None:
    """Keep what `wanted` became, unless something in it besides metadata and conditions depends on its creation."""
    meta = stored["metadata"]
    value = encode_value(_stamped(stored, _UID, _TIME))
    if meta["uid"].encode() not in value and meta["creationTimestamp"].encode() not in value:
        _forms.setdefault(_key(version, wanted), []).append(Form(wanted, value))


def recall(version: str, wanted: Obj) -> Form | None:
    """Return what to store for `wanted` in a new cluster; None: it was not created in this process before."""
    for form in _forms.get(_key(version, wanted), ()):
        if form.wanted == wanted:  # compared at once where both have the same parts, as definitions have schemas
            return form
    return None


def _key(version: str, wanted: Obj) -> _Key:
    meta = wanted["metadata"]
    return version, (wanted["kind"], meta.get("namespace", ""), meta["name"])


def _stamped(obj: Obj, uid: str, time: str) -> Obj:
    """Return a copy with this uid and this time wherever a creation leaves one; the rest is shared."""
    meta = obj["metadata"]
    copied: Obj = {**obj, "metadata": {**meta, "uid": uid, "creationTimestamp": time}}
    if "managedFields" in meta:
        copied["metadata"]["managedFields"] = [{**entry, "time": time} for entry in meta["managedFields"]]
    conditions = (obj.get("status") or {}).get("conditions")
    if conditions:
        timed = [{**condition, "lastTransitionTime": time} for condition in conditions]
        copied["status"] = {**obj["status"], "conditions": timed}
    return copied

"""The stored form of default objects, remembered for the next new cluster of this process.

What the write path makes of a default object (defaults, managedFields) is the same in all clusters of one Kubernetes
version, but for its uid and times. So the first server of a process creates it through the API, and the others write
the remembered bytes with a uid and times of their own: a fleet of simulated clusters starts in half of the time.
"""

from __future__ import annotations

import orjson

from karmada.kube.objects import names
from karmada.kube.objects.types import Obj
from karmada.kube.server.watchcache.entry import encode_value

_UID, _TIME = "\ue000uid\ue000", "\ue000time\ue000"
"""What stands for them; no default object has characters of the private-use area."""
_forms: dict[tuple[str, bytes], bytes] = {}
"""By Kubernetes version and the object that was wanted."""


def remember(version: str, wanted: Obj, stored: Obj) -> None:
    """Keep what `wanted` became, unless something in it besides metadata and conditions depends on its creation."""
    meta = stored["metadata"]
    form = {**stored, "metadata": {**meta, "uid": _UID, "creationTimestamp": _TIME}}
    if "managedFields" in meta:
        form["metadata"]["managedFields"] = [{**entry, "time": _TIME} for entry in meta["managedFields"]]
    conditions = (stored.get("status") or {}).get("conditions")
    if conditions:
        timeless = [{**condition, "lastTransitionTime": _TIME} for condition in conditions]
        form["status"] = {**stored["status"], "conditions": timeless}
    value = encode_value(form)
    if meta["uid"].encode() not in value and meta["creationTimestamp"].encode() not in value:
        _forms[version, orjson.dumps(wanted)] = value


def recall(version: str, wanted: Obj, now: str) -> bytes | None:
    """The bytes to store for `wanted` in a new cluster; None: it was not created in this process before."""
    form = _forms.get((version, orjson.dumps(wanted)))
    if form is None:
        return None
    return form.replace(_UID.encode(), names.random_uuid().encode()).replace(_TIME.encode(), now.encode())

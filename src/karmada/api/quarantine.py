"""What is in quarantine, as ConfigMaps of the control plane: who may see them sees what rests, and why.

They are ConfigMaps in the control plane's own namespace, and no kind of its own: administrators may read and delete
those already, tenants and agents may not; every API server has them, and all replicas see the same. Deleting one
releases the key.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.quarantine import Entry

NAMESPACE: Final = "karmada-system"
LABEL: Final = "karmada.io/quarantine"
CONDITION: Final = "Quarantined"


def key_of_map(entry: Entry) -> Key:
    """Return namespace and name of the ConfigMap of an entry."""
    digest = hashlib.sha256(f"{entry.controller} {entry.key}".encode()).hexdigest()
    return Key(NAMESPACE, f"quarantine-{digest[:16]}")


def to_map(entry: Entry) -> Obj:
    key = key_of_map(entry)
    data = {"controller": entry.controller, "key": entry.key, "since": entry.since, "stack": entry.stack}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": key.namespace, "name": key.name, "labels": {LABEL: "true"}},
        "data": {**data, "entry": msgspec.json.encode(entry).decode()},
    }


def from_map(config_map: Obj) -> Entry | None:
    """Return the entry of a ConfigMap; None if it is none that the control plane made."""
    try:
        entry = msgspec.json.decode((config_map.get("data") or {}).get("entry") or "", type=Entry)
    except msgspec.MsgspecError:
        return None
    metadata = config_map["metadata"]
    return entry if key_of_map(entry) == (metadata.get("namespace"), metadata["name"]) else None

"""What is kept of the pods of members: enough to select them, to know whether they are ready, and what they request.

Labels and containers of pods of one workload are mostly equal; equal ones are kept once.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import NamedTuple

import orjson

from karmada.kube.objects.meta import get_condition
from karmada.kube.objects.types import Obj


class PodKey(NamedTuple):
    """Pods of two clusters may have the same name. `cluster` is "" where it is not known."""

    cluster: str
    name: str


def slim_pod(pod: Obj) -> Obj:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    kept: Obj = {"name": metadata["name"], "uid": metadata.get("uid"), "resourceVersion": metadata["resourceVersion"]}
    kept["namespace"] = intern(metadata.get("namespace", ""))
    if metadata.get("labels"):
        kept["labels"] = _shared(metadata["labels"])
    if metadata.get("deletionTimestamp"):
        kept["deletionTimestamp"] = metadata["deletionTimestamp"]
    state: Obj = {"phase": intern(status.get("phase") or "Pending")}
    if status.get("startTime"):
        state["startTime"] = status["startTime"]
    ready = get_condition(status.get("conditions"), "Ready")
    if ready is not None:
        state["conditions"] = [{k: ready[k] for k in ("type", "status", "lastTransitionTime") if k in ready}]
    return {"metadata": kept, "spec": _shared(_requesting(spec)), "status": state}


def _requesting(spec: Obj) -> Obj:
    """Return the containers that run all the time, with what they request."""
    sidecars = [part for part in spec.get("initContainers") or () if part.get("restartPolicy") == "Always"]
    kept: Obj = {"containers": [_requests(part) for part in spec.get("containers") or ()]}
    if sidecars:
        kept["initContainers"] = [{**_requests(part), "restartPolicy": "Always"} for part in sidecars]
    if spec.get("resources"):
        kept["resources"] = {"requests": spec["resources"].get("requests") or {}}
    return kept


def _requests(container: Obj) -> Obj:
    return {"name": container["name"], "resources": {"requests": (container.get("resources") or {}).get("requests")}}


def _shared(value: Obj) -> Obj:
    return _equal(orjson.dumps(value))


@lru_cache(maxsize=4096)
def _equal(text: bytes) -> Obj:
    found: Obj = orjson.loads(text)
    return found

"""The ReplicaSets of a Deployment as its history: which one is new, their names, revisions and annotations.

A ReplicaSet belongs to a template; its name is the Deployment's with a hash of that template. The new set is the one
with the Deployment's present template, however old it is: a rollback finds the set of the earlier template again, which
gets the highest revision and keeps its previous ones in an annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from karmada.kube.objects import meta
from karmada.kube.objects.names import short_hash
from karmada.kube.objects.types import Obj
from karmada.kube.sim.controllers.rollout import Bounds, Part, rolling_bounds

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
HASH_LABEL: Final = "pod-template-hash"
_NOT_COPIED = frozenset({
    "kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to",
    REVISION, HISTORY, DESIRED, MAXIMUM,
})  # fmt: skip
_HISTORY_LENGTH = 2000


# --- the desired state of a Deployment


def wanted(deployment: Obj) -> int:
    return int(deployment["spec"].get("replicas", 1))


def is_rolling(deployment: Obj) -> bool:
    strategy: Obj = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def bounds(deployment: Obj) -> Bounds:
    if not is_rolling(deployment):
        return Bounds(0, 0)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return rolling_bounds(rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"), wanted(deployment))


def most(deployment: Obj) -> int:
    """Return how many pods there may be at any time."""
    return wanted(deployment) + bounds(deployment).surge


# --- its ReplicaSets


def size(replica_set: Obj) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def count(replica_set: Obj, field: str) -> int:
    return int((replica_set.get("status") or {}).get(field) or 0)


def total(replica_sets: Iterable[Obj]) -> int:
    return sum(map(size, replica_sets))


def part(replica_set: Obj) -> Part:
    """Return a set, as the arithmetic of rollouts needs it."""
    limit = _number(meta.annotations(replica_set).get(MAXIMUM))
    return Part(meta.name(replica_set), size(replica_set), count(replica_set, "availableReplicas"), limit)


def oldest_first(replica_sets: Iterable[Obj]) -> list[Obj]:
    return sorted(replica_sets, key=lambda rs: (meta.creation_time(rs), revision(rs), meta.name(rs)))


def revision(obj: Obj) -> int:
    return _number(meta.annotations(obj).get(REVISION))


def _number(text: str | None) -> int:
    """Return a number from an annotation; what is no number counts as none."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0


def find_new(deployment: Obj, replica_sets: Iterable[Obj]) -> Obj | None:
    """Return the set (the first of them, if there are several) that is made from the Deployment's template."""
    for replica_set in replica_sets:
        if same_template(deployment, replica_set):
            return replica_set
    return None


def same_template(deployment: Obj, replica_set: Obj) -> bool:
    ours, theirs = deployment["spec"]["template"], replica_set["spec"].get("template") or {}
    if (ours.get("spec") or {}) != (theirs.get("spec") or {}):
        return False
    return _template_metadata(ours) == _template_metadata(theirs)


def _template_metadata(template: Obj) -> Obj:
    """Return a template's metadata, without the hash and without what is empty."""
    given = template.get("metadata") or {}
    labels = {key: value for key, value in (given.get("labels") or {}).items() if key != HASH_LABEL}
    return {key: value for key, value in {**given, "labels": labels}.items() if value}


def template_hash(template: Obj, collisions: int | None) -> str:
    """Return the hash of a template; another one after each collision of names."""
    text = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    return short_hash(text if not collisions else text + str(collisions).encode())


def make_replica_set(deployment: Obj, replicas: int, revision_number: int) -> Obj:
    spec = deployment["spec"]
    template = spec["template"]
    short = template_hash(template, (deployment.get("status") or {}).get("collisionCount"))
    mark = {HASH_LABEL: short}
    given = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), **mark}
    selector = spec["selector"]
    made: Obj = {
        "replicas": replicas,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **mark}},
        "template": {**template, "metadata": {**given, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    metadata = {
        "name": f"{meta.name(deployment)}-{short}",
        "namespace": meta.namespace(deployment),
        "labels": labels,
        "annotations": {**_copied(deployment), REVISION: str(revision_number), **size_annotations(deployment)},
        "ownerReferences": [meta.make_owner(deployment)],
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": made}


# --- annotations


def size_annotations(deployment: Obj) -> dict[str, str]:
    """Return the desired and maximum replicas of the Deployment for which a set was scaled."""
    return {DESIRED: str(wanted(deployment)), MAXIMUM: str(most(deployment))}


def was_resized(deployment: Obj, replica_set: Obj) -> bool:
    """Return whether the set has pods, for another number of replicas than the Deployment has now."""
    noted = meta.annotations(replica_set).get(DESIRED)
    return size(replica_set) > 0 and noted is not None and _number(noted) != wanted(deployment)


def new_set_annotations(deployment: Obj, replica_set: Obj, revision_number: int) -> dict[str, str]:
    """Return the annotations of the new set: those of the Deployment, and its place in the history."""
    notes = {**meta.annotations(replica_set), **_copied(deployment)}
    before = notes.get(REVISION, "")
    if _number(before) < revision_number:
        notes[REVISION] = str(revision_number)
        if before:
            notes[HISTORY] = _with_previous(notes.get(HISTORY, ""), before)
    return notes


def _copied(deployment: Obj) -> dict[str, str]:
    return {key: value for key, value in meta.annotations(deployment).items() if key not in _NOT_COPIED}


def _with_previous(history: str, before: str) -> str:
    """Return the history with one more revision; the oldest are dropped when the text becomes too long."""
    known = [*(history.split(",") if history else ()), before]
    while len(",".join(known)) > _HISTORY_LENGTH:
        known.pop(0)
    return ",".join(known)


def next_revision(old: Sequence[Obj]) -> int:
    return max(map(revision, old), default=0) + 1


def superfluous(deployment: Obj, old: Sequence[Obj]) -> list[Obj]:
    """Old sets beyond the history's limit that have no pods, lowest revision first."""
    limit = deployment["spec"].get("revisionHistoryLimit")
    if limit is None:
        return []
    there = [rs for rs in old if not meta.is_deleting(rs)]
    there.sort(key=lambda rs: (revision(rs), meta.creation_time(rs), meta.name(rs)))
    return [rs for rs in there[: max(0, len(there) - limit)] if _is_idle(rs)]


def _is_idle(replica_set: Obj) -> bool:
    observed = count(replica_set, "observedGeneration") >= meta.generation(replica_set)
    return size(replica_set) == 0 and count(replica_set, "replicas") == 0 and observed

"""Pruning: removes from an object what belongs to the cluster it was read from, before it goes to another.

Some fields every object has; the rest goes by kind, whatever the group, in one table of small functions. Admission of
Works, the controllers that write Works and the comparison with a member's object all use it, so that an object pruned
twice, or by two of them, is the same. Each function returns a new object, or the same one when there is nothing to
remove. Fields of an unexpected type are left alone: the target cluster rejects them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from karmada.interpreter.native.kinds import TOKEN_SECRET
from karmada.kube.objects.types import Obj

_SERVERS_METADATA = frozenset({
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
})  # fmt: skip
_REVISIONS = ("deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")
_CONTROLLER_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_LABELS = (*_CONTROLLER_UIDS, "job-name", "batch.kubernetes.io/job-name")


def pruned(obj: Obj, *, keep_ttl: bool = False) -> Obj:
    """Return the object as it may go to another cluster.

    A finished Job stays in its clusters as long as the control plane has it, so its TTL is removed, too, unless
    `keep_ttl`.
    """
    result = {key: value for key, value in obj.items() if key != "status"}
    metadata = obj.get("metadata")
    if metadata:
        result["metadata"] = {key: value for key, value in metadata.items() if key not in _SERVERS_METADATA}
    kind = obj.get("kind") or ""
    by_kind = _BY_KIND.get(kind)
    if by_kind is not None:
        result = by_kind(result)
    if kind == "Job" and not keep_ttl:
        result = _without(result, ("spec",), ("ttlSecondsAfterFinished",))
    return result


def _without(obj: Obj, path: tuple[str, ...], fields: Collection[str]) -> Obj:
    """Return the object with some fields taken out of the dict at a path; a dict that becomes empty stays."""
    holders = [obj]
    for step in path:
        inner = holders[-1].get(step)
        if not isinstance(inner, dict):
            return obj
        holders.append(inner)
    last = holders.pop()
    if last.keys().isdisjoint(fields):
        return obj
    kept = {field: value for field, value in last.items() if field not in fields}
    for holder, step in zip(reversed(holders), reversed(path), strict=True):
        kept = {**holder, step: kept}
    return kept


def _spec(obj: Obj) -> Obj:
    spec = obj.get("spec")
    return spec if isinstance(spec, dict) else {}


def _deployment(obj: Obj) -> Obj:
    return _without(obj, ("metadata", "annotations"), _REVISIONS)


def _job(obj: Obj) -> Obj:
    if _spec(obj).get("manualSelector") is True:
        return obj
    obj = _without(obj, ("spec", "selector", "matchLabels"), _CONTROLLER_UIDS)
    return _without(obj, ("spec", "template", "metadata", "labels"), _JOB_LABELS)


def _secret(obj: Obj) -> Obj:
    if obj.get("type") != TOKEN_SECRET:
        return obj
    return {**_without(obj, ("metadata", "annotations"), ("kubernetes.io/service-account.uid",)), "data": None}


def _service_account(obj: Obj) -> Obj:
    secrets = obj.get("secrets")
    if not isinstance(secrets, list):
        return obj
    tokens = f"{(obj.get('metadata') or {}).get('name') or ''}-token-"
    kept = [secret for secret in secrets if not _name(secret).startswith(tokens)]
    return obj if len(kept) == len(secrets) else {**obj, "secrets": kept}


def _name(reference: Any) -> str:
    name = reference.get("name") if isinstance(reference, dict) else ""
    return name if isinstance(name, str) else ""


def _service(obj: Obj) -> Obj:
    """Return the Service without addresses, which every cluster allocates; a headless one stays headless."""
    address = _spec(obj).get("clusterIP")
    if address is None or address == "None":
        return obj
    return _without(obj, ("spec",), ("clusterIP", "clusterIPs"))


def _claim(obj: Obj) -> Obj:
    return _without(obj, ("metadata", "annotations"), ("volume.kubernetes.io/selected-node",))


_BY_KIND: dict[str, Callable[[Obj], Obj]] = {
    "Deployment": _deployment,
    "Job": _job,
    "Secret": _secret,
    "ServiceAccount": _service_account,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
}

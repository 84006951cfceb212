"""What is taken off an object before it goes to other clusters: all that belongs to the server it was read from.

Some of that every object has; the rest goes by kind, whatever the group, in a table of small functions. Each returns a
new object, or the same when there is nothing to take off; nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

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
    """The object as it may go to another cluster.

    Finished Jobs are left to their clusters only as long as the control plane wants them, so their time to live goes,
    too, unless `keep_ttl`.
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
    """The object with some fields taken out of the dict at a path; a dict that becomes empty stays."""
    if not path:
        return obj if obj.keys().isdisjoint(fields) else {k: v for k, v in obj.items() if k not in fields}
    inner = obj.get(path[0])
    if not inner:
        return obj
    rest = _without(inner, path[1:], fields)
    return obj if rest is inner else {**obj, path[0]: rest}


def _deployment(obj: Obj) -> Obj:
    return _without(obj, ("metadata", "annotations"), _REVISIONS)


def _job(obj: Obj) -> Obj:
    if (obj.get("spec") or {}).get("manualSelector"):
        return obj
    obj = _without(obj, ("spec", "selector", "matchLabels"), _CONTROLLER_UIDS)
    return _without(obj, ("spec", "template", "metadata", "labels"), _JOB_LABELS)


def _secret(obj: Obj) -> Obj:
    if obj.get("type") != TOKEN_SECRET:
        return obj
    return {**_without(obj, ("metadata", "annotations"), ("kubernetes.io/service-account.uid",)), "data": None}


def _service_account(obj: Obj) -> Obj:
    secrets = obj.get("secrets")
    if not secrets:
        return obj
    tokens = f"{(obj.get('metadata') or {}).get('name') or ''}-token-"
    kept = [secret for secret in secrets if not (secret.get("name") or "").startswith(tokens)]
    return obj if len(kept) == len(secrets) else {**obj, "secrets": kept}


def _service(obj: Obj) -> Obj:
    address = (obj.get("spec") or {}).get("clusterIP")
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

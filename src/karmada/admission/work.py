"""Work: manifests as they are sent to a cluster.

What the control plane's API server put into an object (identity, status, addresses, owners) means nothing in another
cluster and is taken out. What is left tells which of its labels and annotations come from here, so that a later
update can tell a key that was removed here from one that somebody added there. Controllers that write Works do the same
with `prune` and `record` beforehand; then nothing is left to do here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from karmada.admission.bindings import give_id
from karmada.admission.context import Context, Refusal
from karmada.api.well_known import MANAGED_ANNOTATIONS, MANAGED_LABELS, WORK_ID
from karmada.kube.objects.types import Obj

_METADATA = (
    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
)  # fmt: skip
_JOB_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_LABELS = (*_JOB_UIDS, "job-name", "batch.kubernetes.io/job-name")


def mutate(work: Obj, _old: Obj | None, context: Context) -> None:
    give_id(work, WORK_ID, context)
    spec = work.get("spec")
    if spec is None:
        return
    if spec.get("workload") is None:
        spec["workload"] = {}
    identity = work["metadata"]["labels"][WORK_ID]
    for manifest in spec["workload"].get("manifests") or ():
        if not isinstance(manifest, dict) or not manifest.get("kind"):
            shown = orjson.dumps(manifest).decode()
            raise Refusal.failure(f"Object 'Kind' is missing in '{shown}'")
        prune(manifest)
        record(manifest, identity)


def prune(manifest: Obj) -> None:
    """Take out, in place, what belongs to the object here and not to its copies."""
    meta = _part(manifest, "metadata")
    for key in _METADATA:
        meta.pop(key, None)
    manifest.pop("status", None)
    of_kind = _BY_KIND.get(manifest["kind"])
    if of_kind is not None:
        of_kind(manifest)


def record(manifest: Obj, work_id: str) -> None:
    """Write down, in place, which labels and annotations the manifest has; its Work's id is one of them."""
    meta = _part(manifest, "metadata")
    annotations, labels = _part(meta, "annotations"), _part(meta, "labels")
    annotations[MANAGED_ANNOTATIONS] = ",".join(sorted({*annotations, MANAGED_ANNOTATIONS, MANAGED_LABELS}))
    labels[WORK_ID] = work_id
    annotations[MANAGED_LABELS] = ",".join(sorted(labels))


def _part(holder: Obj, key: str) -> Obj:
    found = holder.get(key)
    if found is None:
        found = holder[key] = {}
    return _dict(found)


def _dict(value: Any) -> Obj:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _drop(holder: Obj | None, *keys: str) -> None:
    if holder:
        for key in keys:
            holder.pop(key, None)


def _annotations(manifest: Obj) -> Obj | None:
    annotations: Obj | None = manifest["metadata"].get("annotations")
    return annotations


def _deployment(manifest: Obj) -> None:
    _drop(_annotations(manifest), "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")


def _job(manifest: Obj) -> None:
    spec = manifest.get("spec") or {}
    spec.pop("ttlSecondsAfterFinished", None)
    if spec.get("manualSelector") is True:
        return
    _drop((spec.get("selector") or {}).get("matchLabels"), *_JOB_UIDS)
    _drop(((spec.get("template") or {}).get("metadata") or {}).get("labels"), *_JOB_LABELS)


def _secret(manifest: Obj) -> None:
    """A token belongs to the account of the cluster it was made in."""
    if manifest.get("type") == "kubernetes.io/service-account-token":
        _drop(_annotations(manifest), "kubernetes.io/service-account.uid")
        manifest["data"] = None


def _service_account(manifest: Obj) -> None:
    secrets = manifest.get("secrets")
    if secrets:
        made_there = f"{manifest['metadata'].get('name') or ''}-token-"
        manifest["secrets"] = [s for s in secrets if not (s.get("name") or "").startswith(made_there)]


def _service(manifest: Obj) -> None:
    """Every cluster has addresses of its own; none at all is a wish that holds everywhere."""
    spec = manifest.get("spec") or {}
    if spec.get("clusterIP") and spec["clusterIP"] != "None":
        _drop(spec, "clusterIP", "clusterIPs")


def _claim(manifest: Obj) -> None:
    _drop(_annotations(manifest), "volume.kubernetes.io/selected-node")


_BY_KIND: dict[str, Callable[[Obj], None]] = {
    "Deployment": _deployment,
    "Job": _job,
    "Secret": _secret,
    "ServiceAccount": _service_account,
    "Service": _service,
    "PersistentVolumeClaim": _claim,
}

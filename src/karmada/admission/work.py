"""Work: manifests as they are sent to a cluster.

What the control plane's API server put into an object (identity, status, addresses, owners) means nothing in another
cluster and is taken out. What is left tells which of its labels and annotations come from here, so that a later
update can tell a key that was removed here from one that somebody added there. Controllers that write Works do the same
with `prune` and `record` beforehand; then nothing is left to do here.

A manifest is only looked into, not judged: what has another shape than its kind should have nothing to be taken out,
and is refused by the cluster it goes to. Its kind and its metadata are needed here, though.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from karmada.admission.bindings import give_id
from karmada.admission.context import BAD_REQUEST, Context, Refusal
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
    for index, manifest in enumerate(spec["workload"].get("manifests") or ()):
        if not isinstance(manifest, dict) or not manifest.get("kind"):
            shown = orjson.dumps(manifest).decode()
            raise Refusal.failure(f"Object 'Kind' is missing in '{shown}'")
        wrong = _wrong(manifest)
        if wrong:
            raise Refusal.failure(f"spec.workload.manifests[{index}].{wrong}", BAD_REQUEST)
        prune(manifest)
        record(manifest, identity)


def _wrong(manifest: Obj) -> str:
    """What of a manifest that cannot be done without is not what it has to be."""
    if not isinstance(manifest["kind"], str):
        return "kind must be a string"
    meta = manifest.get("metadata")
    if not isinstance(meta, dict | None):
        return "metadata must be an object"
    for part in ("labels", "annotations"):
        if not isinstance((meta or {}).get(part), dict | None):
            return f"metadata.{part} must be an object"
    return ""


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
    if not isinstance(found, dict):
        raise TypeError(f"{key} must be an object")
    return found


def _at(holder: Obj, *path: str) -> Obj:
    """The object at that place, to be changed; an empty one where there is none."""
    found: Any = holder
    for key in path:
        found = found.get(key)
        if not isinstance(found, dict):
            return {}
    return found  # type: ignore[no-any-return]


def _drop(holder: Obj, *keys: str) -> None:
    for key in keys:
        holder.pop(key, None)


def _annotations(manifest: Obj) -> Obj:
    return _at(manifest, "metadata", "annotations")


def _deployment(manifest: Obj) -> None:
    _drop(_annotations(manifest), "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")


def _job(manifest: Obj) -> None:
    spec = _at(manifest, "spec")
    spec.pop("ttlSecondsAfterFinished", None)
    if spec.get("manualSelector") is True:
        return
    _drop(_at(spec, "selector", "matchLabels"), *_JOB_UIDS)
    _drop(_at(spec, "template", "metadata", "labels"), *_JOB_LABELS)


def _secret(manifest: Obj) -> None:
    """A token belongs to the account of the cluster it was made in."""
    if manifest.get("type") == "kubernetes.io/service-account-token":
        _drop(_annotations(manifest), "kubernetes.io/service-account.uid")
        manifest["data"] = None


def _service_account(manifest: Obj) -> None:
    secrets = manifest.get("secrets")
    if isinstance(secrets, list):
        made_there = f"{manifest['metadata'].get('name') or ''}-token-"
        manifest["secrets"] = [secret for secret in secrets if not _named(secret).startswith(made_there)]


def _named(reference: Any) -> str:
    name = reference.get("name") if isinstance(reference, dict) else ""
    return name if isinstance(name, str) else ""


def _service(manifest: Obj) -> None:
    """Every cluster has addresses of its own; none at all is a wish that holds everywhere."""
    spec = _at(manifest, "spec")
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

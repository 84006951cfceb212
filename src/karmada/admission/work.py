"""Work: manifests as they are sent to a cluster.

Each manifest is pruned of what means nothing in another cluster (see karmada.interpreter.pruning), and records which of
its labels and annotations come from the control plane: a later update can then distinguish a key that was removed here
from one that was added in the member. Controllers that write Works do the same beforehand, so that admission leaves
their Works unchanged.

Only kind and metadata of a manifest are validated; the cluster it goes to validates the rest.
"""

from __future__ import annotations

import orjson

from karmada.admission.bindings import give_id
from karmada.admission.context import BAD_REQUEST, Context, Refusal
from karmada.api.well_known import MANAGED_ANNOTATIONS, MANAGED_LABELS, WORK_ID
from karmada.interpreter.pruning import pruned
from karmada.kube.objects.types import Obj


def mutate(work: Obj, _old: Obj | None, context: Context) -> None:
    give_id(work, WORK_ID, context)
    spec = work.get("spec")
    if spec is None:
        return
    if spec.get("workload") is None:
        spec["workload"] = {}
    identity = work["metadata"]["labels"][WORK_ID]
    manifests = spec["workload"].get("manifests") or []
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict) or not manifest.get("kind"):
            shown = orjson.dumps(manifest).decode()
            raise Refusal.failure(f"Object 'Kind' is missing in '{shown}'")
        wrong = _wrong(manifest)
        if wrong:
            raise Refusal.failure(f"spec.workload.manifests[{index}].{wrong}", BAD_REQUEST)
        manifests[index] = pruned(manifest)
        record(manifests[index], identity)


def _wrong(manifest: Obj) -> str:
    """Return which required part of a manifest is not what it has to be."""
    if not isinstance(manifest["kind"], str):
        return "kind must be a string"
    meta = manifest.get("metadata")
    if not isinstance(meta, dict | None):
        return "metadata must be an object"
    for part in ("labels", "annotations"):
        if not isinstance((meta or {}).get(part), dict | None):
            return f"metadata.{part} must be an object"
    return ""


def record(manifest: Obj, work_id: str) -> None:
    """Write down, in place, which labels and annotations the manifest has; its Work's id is one of them."""
    metadata = manifest["metadata"] = manifest.get("metadata") or {}
    annotations = metadata["annotations"] = metadata.get("annotations") or {}
    labels = metadata["labels"] = metadata.get("labels") or {}
    annotations[MANAGED_ANNOTATIONS] = ",".join(sorted({*annotations, MANAGED_ANNOTATIONS, MANAGED_LABELS}))
    labels[WORK_ID] = work_id
    annotations[MANAGED_LABELS] = ",".join(sorted(labels))

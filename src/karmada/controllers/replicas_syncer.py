"""Sets a Deployment's spec.replicas to its status.replicas, which autoscalers in the members have scaled.

Only for Deployments that are labelled to retain replicas and whose replicas are divided among clusters. The status is
used once it is the sum of what all clusters report for the last schedule result; until then it is checked every second.
"""

from __future__ import annotations

from typing import Final

from karmada.api import well_known
from karmada.api.work import ResourceBinding
from karmada.controllers.context import Context
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.keys import Key

SYNCER: Final = "deployment-replicas-syncer"
_MARKED: Final = f"{well_known.RETAIN_REPLICAS}={well_known.TRUE}"
_PAUSE: Final = 1.0


def is_divided(binding: Obj) -> bool:
    scheduling = ((binding.get("spec") or {}).get("placement") or {}).get("replicaScheduling")
    return scheduling is not None and (scheduling.get("replicaSchedulingType") or "Divided") == "Divided"


def is_collected(deployment: Obj, binding: Obj) -> bool:
    """Return whether the status is the sum of what every cluster reports of the replicas that were scheduled last."""
    spec, status = binding.get("spec") or {}, binding.get("status") or {}
    if spec.get("replicas", 0) != deployment["spec"].get("replicas"):
        return False
    if meta.generation(binding) != status.get("schedulerObservedGeneration", 0):
        return False
    items = status.get("aggregatedStatus") or []
    counts = [(item.get("status") or {}).get("replicas") or 0 for item in items]
    if len(items) != len(spec.get("clusters") or ()) or not all(count > 0 for count in counts):
        return False
    return sum(counts) == _status_replicas(deployment)


def _status_replicas(deployment: Obj) -> int:
    return (deployment.get("status") or {}).get("replicas") or 0


class DeploymentReplicasSyncer(Reconciler):
    name = SYNCER
    watches = (
        Watch(
            DEPLOYMENTS,
            label_selector=_MARKED,
            on=("ADDED", "MODIFIED"),
            changed=("spec.replicas", "status.replicas"),
        ),
    )

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._deployments = context.informers.of(DEPLOYMENTS, label_selector=_MARKED)
        self._bindings = context.informers.of(ResourceBinding.gvr)

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(Key(key.namespace, well_known.binding_name("Deployment", key.name)))
        deployment = self._deployments.get(key)
        if binding is None or deployment is None or not is_divided(binding):
            return Done
        wanted = _status_replicas(deployment)
        if deployment["spec"].get("replicas") == wanted:
            return Done
        if not is_collected(deployment, binding):
            return requeue(_PAUSE)
        patch = {
            "metadata": {"resourceVersion": meta.resource_version(deployment)},
            "spec": {"replicas": wanted},
        }
        await self._client.patch(DEPLOYMENTS, key.name, key.namespace, patch)
        return Done

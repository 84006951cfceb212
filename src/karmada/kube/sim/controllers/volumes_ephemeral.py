"""Generic ephemeral volumes: a volume with a claim template gets a claim <pod>-<volume>, owned by the pod."""

from __future__ import annotations

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import AlreadyExists, ApiError
from karmada.kube.objects.gvrs import CLAIMS, PODS
from karmada.kube.objects.meta import make_owner
from karmada.kube.objects.podstate import is_active
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import is_namespace_ending


def _templates(pod: Obj) -> list[tuple[str, Obj]]:
    """Return the claims a pod brings along, by name."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return [
        (f"{pod['metadata']['name']}-{volume['name']}", volume["ephemeral"]["volumeClaimTemplate"])
        for volume in volumes
        if volume.get("ephemeral")
    ]


def _brings_claims(pod: Obj) -> bool:
    return bool(_templates(pod))


class EphemeralVolumes(Reconciler):
    name = "ephemeral-volume"
    watches = (Watch(PODS, on=("ADDED",), when=matching(_brings_claims)),)

    def __init__(self, context: Context) -> None:
        self._client = context.client()
        self._pods = context.informers.of(PODS)
        self._claims = context.informers.of(CLAIMS)
        self._recorder = context.recorder("ephemeral_volume")

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        if pod is None or not is_active(pod):
            return Done
        for name, template in _templates(pod):
            if self._claims.get(Key(key.namespace, name)) is None:
                await self._create(pod, name, template)
        return Done

    async def _create(self, pod: Obj, name: str, template: Obj) -> None:
        given = template.get("metadata") or {}
        metadata: Obj = {part: copy_json(given[part]) for part in ("labels", "annotations") if given.get(part)}
        metadata |= {"name": name, "namespace": pod["metadata"]["namespace"], "ownerReferences": [make_owner(pod)]}
        claim: Obj = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
        try:
            await self._client.create(CLAIMS, {**claim, "spec": copy_json(template["spec"])})
        except AlreadyExists:
            return  # a claim of the same name: the scheduler and kubelet check whether it is the pod's
        except ApiError as error:
            if is_namespace_ending(error):
                return
            message = f"ephemeral volume {name}: {error.message}"
            self._recorder.event(pod, WARNING, "FailedBinding", message)
            raise

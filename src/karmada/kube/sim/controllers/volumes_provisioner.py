"""The storage system of a simulated cluster: creates a volume for every claim of its provisioners.

It is the provisioner of the profile's classes and of the local one. Local volumes are on the selected node and
reachable from there only; without a selected node they are reachable from everywhere, because no topology was
selected. If the selected node is gone, the scheduler must select again.
"""

from __future__ import annotations

from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvrs import CLAIMS, NODES, STORAGE_CLASSES, VOLUMES
from karmada.kube.objects.meta import annotations as annotations_of
from karmada.kube.objects.meta import is_deleting
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import patch_if_changed
from karmada.kube.server.admission.storage import class_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.timers import Timers
from karmada.kube.sim.controllers.volumes_model import (
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    provisioned_name,
    reference_to_claim,
    requested_size,
    spec_of,
    volume_mode,
    waits_for_consumer,
)
from karmada.kube.sim.controllers.volumes_writes import annotated

LOCAL = "sim.io/local"
HOSTNAME = "kubernetes.io/hostname"
_LOCAL_PATH = "/var/lib/sim/volumes"


def _is_for_provisioner(claim: Obj) -> bool:
    return STORAGE_PROVISIONER in annotations_of(claim)


def volume_for(claim: Obj, storage_class: Obj, node: Obj | None) -> Obj:
    """Return the volume that is made for a claim; `node` is where a local one lives."""
    name, provisioner = provisioned_name(claim), storage_class["provisioner"]
    spec: Obj = {
        "capacity": {"storage": str(requested_size(claim))},
        "accessModes": list(spec_of(claim).get("accessModes") or ()),
        "claimRef": reference_to_claim(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "volumeMode": volume_mode(claim),
    }
    if storage_class.get("mountOptions"):
        spec["mountOptions"] = list(storage_class["mountOptions"])
    if provisioner == LOCAL:
        spec["hostPath"] = {"path": f"{_LOCAL_PATH}/{name}", "type": "DirectoryOrCreate"}
        if node is not None:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [_is_host(node)]}]}}
    else:
        spec["csi"] = {"driver": provisioner, "volumeHandle": name}
    metadata = {"name": name, "annotations": {PROVISIONED_BY: provisioner}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _is_host(node: Obj) -> Obj:
    metadata = node["metadata"]
    host = (metadata.get("labels") or {}).get(HOSTNAME) or metadata["name"]
    return {"key": HOSTNAME, "operator": "In", "values": [host]}


class VolumeProvisioner(Reconciler):
    name = "volume-provisioner"
    watches = (Watch(CLAIMS, when=matching(_is_for_provisioner)),)
    workers = 4

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._claims = context.informers.of(CLAIMS)
        self._volumes = context.informers.of(VOLUMES)
        self._classes = context.informers.of(STORAGE_CLASSES)
        self._nodes = context.informers.of(NODES)
        served = {LOCAL, *(entry.provisioner for entry in context.profile.storage_classes)}
        self._recorders = {name: context.recorder(f"{name}_{context.profile.name}") for name in sorted(served)}
        self._timers = Timers(context, context.profile.latencies.provision)

    async def reconcile(self, key: Key) -> Result:
        claim = self._claims.get(key)
        storage_class = self._wanted(claim) if claim is not None else None
        if claim is None or storage_class is None:
            self._timers.forget(key)
            return Done
        recorder = self._recorders[storage_class["provisioner"]]
        selected = annotations_of(claim).get(SELECTED_NODE)
        node = self._nodes.get(Key("", selected)) if selected else None
        if selected and node is None:
            message = f'failed to get target node: nodes "{selected}" not found'
            recorder.event(claim, WARNING, "ProvisioningFailed", message)
            self._timers.forget(key)
            await patch_if_changed(self._client, CLAIMS, claim, annotated(claim, {SELECTED_NODE: None}), locked=True)
            return Done
        if not self._timers.running(key):
            message = f'External provisioner is provisioning volume for claim "{key}"'
            recorder.event(claim, NORMAL, "Provisioning", message)
        wait = self._timers.left(key)
        if wait > 0:
            return requeue(wait)
        name = await self._make(claim, storage_class, node)
        recorder.event(claim, NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        self._timers.forget(key)
        return Done

    def _wanted(self, claim: Obj) -> Obj | None:
        """Return the class to make a volume of, if one is to be made now."""
        if is_deleting(claim) or spec_of(claim).get("volumeName"):
            return None
        storage_class = self._classes.get(Key("", class_of(claim) or ""))
        if storage_class is None or storage_class["provisioner"] not in self._recorders:
            return None
        if annotations_of(claim).get(STORAGE_PROVISIONER) != storage_class["provisioner"]:
            return None
        if waits_for_consumer(storage_class) and not annotations_of(claim).get(SELECTED_NODE):
            return None
        return storage_class if self._volumes.get(Key("", provisioned_name(claim))) is None else None

    async def _make(self, claim: Obj, storage_class: Obj, node: Obj | None) -> str:
        name = provisioned_name(claim)
        try:
            made = await self._client.create(VOLUMES, volume_for(claim, storage_class, node))
        except AlreadyExists:
            return name
        await self._context.until_seen(self._volumes, [made])
        return name

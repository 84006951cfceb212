"""The volume claims of a StatefulSet's pods: made before the pod, and owned as the retention policy says.

A claim outlives its pod. Under `whenDeleted: Delete` the set controls it, so that the garbage collector takes it with
the set; under `whenScaled: Delete` a pod that is scaled down controls it before it is deleted, so that it is deleted
with the pod. Claims with another controller are not changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from karmada.kube.objects.errors import AlreadyExists, ApiError, NotFound
from karmada.kube.objects.gvrs import CLAIMS
from karmada.kube.objects.meta import is_deleting, make_owner, owner_references
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.podcontrol import is_namespace_ending
from karmada.kube.sim.controllers.statefulset_identity import claim_name, claim_templates, new_claim


def wanted_owners(workload: Obj, claim: Obj, pod: Obj, *, surplus: bool) -> list[Obj]:
    """Return the owner references of a claim while this pod uses it; `surplus`: the pod is being scaled away."""
    policy = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    ours = {("StatefulSet", workload["metadata"]["name"]), ("Pod", pod["metadata"]["name"])}
    references = owner_references(claim)
    others = [reference for reference in references if (reference["kind"], reference["name"]) not in ours]
    if any(reference.get("controller") for reference in others):
        return references
    if surplus and policy.get("whenScaled") == "Delete":
        return [*others, make_owner({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})]
    if policy.get("whenDeleted") == "Delete":
        return [*others, make_owner(workload)]
    return others


def is_leftover(claim: Obj, pod: str) -> bool:
    """Return whether the claim is going, or belongs to an earlier pod of this name and will go with it."""
    going_with = any(owner["kind"] == "Pod" and owner["name"] == pod for owner in owner_references(claim))
    return is_deleting(claim) or going_with


class Claims:
    def __init__(self, context: Context, component: str) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder(component)
        self._informer = context.informers.of(CLAIMS)

    def _existing(self, workload: Obj, pod: str) -> Iterable[tuple[Obj, Obj | None]]:
        namespace = workload["metadata"]["namespace"]
        for template in claim_templates(workload):
            yield template, self._informer.get(Key(namespace, claim_name(template, pod)))

    async def provide(self, workload: Obj, pod: str) -> bool:
        """Make the claims that a pod of this name needs; False while old ones of these names must go first."""
        claims = list(self._existing(workload, pod))
        if any(claim is not None and is_leftover(claim, pod) for _, claim in claims):
            return False
        made = [await self._create(workload, template, pod) for template, claim in claims if claim is None]
        await self._context.until_seen(self._informer, made)
        return True

    async def _create(self, workload: Obj, template: Obj, pod: str) -> Obj:
        claim = new_claim(workload, template, pod)
        policy = workload["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenDeleted") == "Delete":
            claim["metadata"]["ownerReferences"] = [make_owner(workload)]
        name, owner = claim["metadata"]["name"], workload["metadata"]["name"]
        try:
            made = await self._client.create(CLAIMS, claim)
        except AlreadyExists:
            return await self._client.get(CLAIMS, name, claim["metadata"]["namespace"])
        except ApiError as error:
            if not is_namespace_ending(error):
                why = f"create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {error.message}"
                self._recorder.event(workload, WARNING, "FailedCreate", why)
            raise
        message = f"create Claim {name} Pod {pod} in StatefulSet {owner} success"
        self._recorder.event(workload, NORMAL, "SuccessfulCreate", message)
        return made

    async def settle_owners(self, workload: Obj, pod: Obj, *, surplus: bool) -> None:
        """Give the claims of a pod the owners that the retention policy requires."""
        changed = []
        for _, claim in self._existing(workload, pod["metadata"]["name"]):
            if claim is None or is_deleting(claim):
                continue
            wanted = wanted_owners(workload, claim, pod, surplus=surplus)
            if wanted != owner_references(claim):
                changed += await self._set_owners(claim, wanted)
        await self._context.until_seen(self._informer, changed)

    async def _set_owners(self, claim: Obj, owners: list[Obj]) -> list[Obj]:
        metadata = claim["metadata"]
        patch = {"metadata": {"ownerReferences": owners or None, "resourceVersion": metadata["resourceVersion"]}}
        try:
            return [await self._client.patch(CLAIMS, metadata["name"], metadata["namespace"], patch)]
        except NotFound:
            return []

"""Namespace controller: empties a namespace that is being deleted, then lets it go.

It starts `delay` seconds after the deletion, so that what was deleted by mistake can still be read and finalizers can
be removed. Pods are deleted first: while any is left nothing else goes, because they may need what is beside them. Then
every namespaced resource in discovery is deleted as a collection. As long as something is left (finalizers, grace
periods, groups that do not respond), the namespace's conditions say what and why, and it is requeued with growing
pauses.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from karmada.kube.client.client import Client
from karmada.kube.client.discovery import Mapping
from karmada.kube.objects.clock import Clock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.meta import set_condition
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.event_filter import matching
from karmada.kube.runtime.informers import Informers
from karmada.kube.runtime.keys import Key
from karmada.kube.server.controllers.waiting import look_again_after

FINALIZER = "kubernetes"
PODS = GVR("", "v1", "pods").group_resource


@dataclass(slots=True)
class Remains:
    """The content that a pass over a namespace left."""

    undiscovered: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    finalizers: Counter[str] = field(default_factory=Counter)

    @property
    def nothing(self) -> bool:
        return not (self.undiscovered or self.failures or self.left)


def conditions(remains: Remains) -> list[Obj]:
    """Return the five conditions of a terminating namespace."""
    left = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(remains.left.items()))
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(remains.finalizers.items()))
    failing = ", ".join(f"{name}: {why}" for name, why in sorted(remains.undiscovered.items()))
    failed = ", ".join(sorted(remains.failures))
    return [
        _condition(
            "NamespaceDeletionDiscoveryFailure", bool(failing),
            ("ResourcesDiscovered", "All resources successfully discovered"),
            ("DiscoveryFailed", f"Discovery failed for some groups, {len(remains.undiscovered)} failing: {failing}"),
        ),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure", False,
            ("ParsedGroupVersions", "All legacy kube types successfully parsed"), ("GroupVersionParsingFailed", ""),
        ),
        _condition(
            "NamespaceDeletionContentFailure", bool(failed),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
            ("ContentDeletionFailed",
             f"Failed to delete all resource types, {len(remains.failures)} remaining: {failed}"),
        ),
        _condition(
            "NamespaceContentRemaining", bool(left),
            ("ContentRemoved", "All content successfully removed"),
            ("SomeResourcesRemain", f"Some resources are remaining: {left}"),
        ),
        _condition(
            "NamespaceFinalizersRemaining", bool(held),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
            ("SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {held}"),
        ),
    ]  # fmt: skip


def _condition(kind: str, problem: bool, fine: tuple[str, str], wrong: tuple[str, str]) -> Obj:
    reason, message = wrong if problem else fine
    return {"type": kind, "status": "True" if problem else "False", "reason": reason, "message": message}


class NamespaceController(Reconciler):
    name = "namespace"
    workers = 5

    def __init__(self, client: Client, informers: Informers, clock: Clock, delay: float = 0.0) -> None:
        deleting = matching(lambda obj: "deletionTimestamp" in obj["metadata"])
        self.watches = (Watch(NAMESPACES, when=deleting, after=delay),)
        self._delay = delay
        self._client = client
        self._namespaces = informers.of(NAMESPACES)
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        namespace = self._namespaces.get(key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return Done
        if FINALIZER not in (namespace["spec"].get("finalizers") or []):
            return Done
        remains = await self._empty(key.name)
        await self._report(key.name, remains)
        if not remains.nothing:
            return requeue(look_again_after(namespace, self._clock.now() - self._delay))
        await self._finalize(key.name)
        return Done

    async def _empty(self, namespace: str) -> Remains:
        catalog = await self._client.mapper.refresh()
        remains = Remains(undiscovered={str(gv): why for gv, why in catalog.failed.items()})
        deletable = [m for m in catalog.by_group_resource.values() if m.namespaced and m.allows("delete", "list")]
        for mapping in sorted(deletable, key=lambda mapping: mapping.gvr.group_resource != PODS):
            try:
                await self._empty_resource(namespace, mapping, remains)
            except NotFound:
                continue
            except ApiError as error:
                remains.failures.append(
                    f"unexpected items still remain in namespace: {namespace} for gvr: "
                    f"{mapping.gvr.group_resource}: {error.message}"
                )
            if mapping.gvr.group_resource == PODS and (remains.left or remains.failures):
                break
        return remains

    async def _empty_resource(self, namespace: str, mapping: Mapping, remains: Remains) -> None:
        items = (await self._client.list_all(mapping.gvr, namespace)).items
        if not items:
            return
        await self._delete(namespace, mapping, items)
        left = (await self._client.list_all(mapping.gvr, namespace)).items
        if left:
            name = f"{mapping.gvr.resource}.{mapping.gvr.group}"
            remains.left[name] = len(left)
            remains.finalizers.update(f for obj in left for f in obj["metadata"].get("finalizers") or [])

    async def _delete(self, namespace: str, mapping: Mapping, items: list[Obj]) -> None:
        if mapping.allows("deletecollection"):
            try:
                await self._client.delete_collection(mapping.gvr, namespace, propagation="Background")
                return
            except MethodNotAllowed:
                pass  # an aggregated server may list a verb it does not have: go on one by one
        for obj in items:
            try:
                await self._client.delete(mapping.gvr, obj["metadata"]["name"], namespace, propagation="Background")
            except NotFound:
                continue

    async def _report(self, name: str, remains: Remains) -> None:
        try:
            namespace: Obj = copy_json(await self._client.get(NAMESPACES, name))
            status = namespace.setdefault("status", {})
            before = status.get("conditions") or []
            after = before
            for condition in conditions(remains):
                after = set_condition(after, condition, self._clock.now())
            if after != before:
                status["conditions"] = after
                await self._client.update_status(NAMESPACES, namespace)
        except (NotFound, Conflict):
            return

    async def _finalize(self, name: str) -> None:
        try:
            namespace: Obj = copy_json(await self._client.get(NAMESPACES, name))
            kept = [f for f in namespace["spec"].get("finalizers") or [] if f != FINALIZER]
            namespace["spec"]["finalizers"] = kept
            await self._client.update(NAMESPACES, namespace, subresource="finalize")
        except NotFound:
            return

"""Creating, deleting and claiming the pods of a workload: what all workload controllers share.

Pods belong to the controller that their controller reference names. `claim` adopts matching orphans and releases own
pods that no longer match. `index_by_controller` indexes an informer's pods (or ReplicaSets, Jobs, …) by that owner.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError, Forbidden, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import PODS
from karmada.kube.objects.meta import controller_of, is_deleting, make_owner
from karmada.kube.objects.selectors import LabelSelector, labels_from, labels_from_map
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists, get_if_exists
from karmada.kube.sim.context import Context

BY_CONTROLLER = "controller"
BY_NODE = "node"
BURST = 500
"""The largest number of pods created or deleted in one reconcile."""


def index_by_controller(obj: Obj) -> Iterable[str]:
    owner = controller_of(obj)
    return (owner["uid"],) if owner is not None else ()


def index_by_node(pod: Obj) -> Iterable[str]:
    """For an informer's pods, under the name BY_NODE: those that were given to a node."""
    node = (pod.get("spec") or {}).get("nodeName")
    return (node,) if node else ()


def pods_on(pods: Informer) -> Callable[[Obj], Iterable[Key]]:
    """For Watch.map_to: the pods of a changed node; they must be indexed by BY_NODE."""
    return lambda node: [key_of(pod) for pod in pods.by_index(BY_NODE, node["metadata"]["name"])]


def owner_key(kind: str) -> Callable[[Obj], Iterable[Key]]:
    """For Watch.map_to: the object of this kind that controls a changed object."""

    def mapped(obj: Obj) -> Iterable[Key]:
        owner = controller_of(obj)
        if owner is None or owner["kind"] != kind:
            return ()
        return (Key(obj["metadata"].get("namespace", ""), owner["name"]),)

    return mapped


def selector_of(workload: Obj) -> LabelSelector:
    selector = workload["spec"].get("selector")
    return labels_from_map(selector) if workload["kind"] == "ReplicationController" else labels_from(selector)


class PodControl:
    def __init__(self, context: Context, component: str) -> None:
        self._client = context.client()
        self._recorder = context.recorder(component)

    async def create(self, owner: Obj, pod: Obj) -> Obj:
        """Create a pod; on refusal, emit an event and raise."""
        try:
            made = await self._client.create(PODS, pod)
        except ApiError as error:
            if not is_namespace_ending(error):
                self._recorder.event(owner, WARNING, "FailedCreate", f"Error creating: {error.message}")
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    async def delete(self, owner: Obj, pod: Obj) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            if await delete_if_exists(self._client, PODS, name, namespace, uid=pod["metadata"]["uid"]):
                self._recorder.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {name}")
        except ApiError as error:
            self._recorder.event(owner, WARNING, "FailedDelete", f'Error deleting pod "{name}": {error.message}')
            raise

    async def claim(
        self,
        resource: GVR,
        owner: Obj,
        selector: LabelSelector,
        candidates: Iterable[Obj],
        *,
        finalizer: str = "",
    ) -> list[Obj]:
        """Return the candidates that are the owner's now: its own that match, and matching orphans, adopted.

        Its own that do not match are released, and lose the owner's `finalizer` with it.

        Before the first is adopted, the owner is read from the server and must not be deleting: orphans of an owner
        that was deleted a moment ago must not become its own again, or they would be deleted after it.
        """
        own_uid = owner["metadata"]["uid"]
        stays: bool | None = False if is_deleting(owner) else None
        claimed = []
        for obj in candidates:
            controller = controller_of(obj)
            matches = selector.matches(obj["metadata"].get("labels"))
            if controller is None:
                if matches and not is_deleting(obj):
                    stays = await self._may_adopt(owner) if stays is None else stays
                    adopted = await self._adopt(resource, owner, obj) if stays else None
                    claimed += [adopted] if adopted is not None else []
            elif controller["uid"] == own_uid:
                if matches:
                    claimed.append(obj)
                elif not is_deleting(owner):
                    kept = [o for o in _owners(obj) if o.get("uid") != own_uid]
                    await self._set_owners(resource, obj, kept, drop=finalizer)
        return claimed

    async def _may_adopt(self, owner: Obj) -> bool:
        metadata = owner["metadata"]
        kind = GVK.parse(owner["apiVersion"], owner["kind"])
        live = await get_if_exists(self._client, kind, metadata["name"], metadata["namespace"])
        return _still_exists(live, metadata["uid"])

    async def _adopt(self, resource: GVR, owner: Obj, obj: Obj) -> Obj | None:
        return await self._set_owners(resource, obj, [*_owners(obj), make_owner(owner)])

    async def _set_owners(self, resource: GVR, obj: Obj, owners: list[Obj], *, drop: str = "") -> Obj | None:
        """With uid and resourceVersion as preconditions; None if the object was deleted or changed."""
        metadata = obj["metadata"]
        changed: Obj = {
            "ownerReferences": owners or None,
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        }
        if drop in (metadata.get("finalizers") or ()):
            changed["finalizers"] = [name for name in metadata["finalizers"] if name != drop] or None
        patch = {"metadata": changed}
        try:
            return await self._client.patch(resource, metadata["name"], metadata["namespace"], patch, type="merge")
        except NotFound:
            return None


def pod_from(template: Obj, owner: Obj, *, name: str = "", generate_name: str = "") -> Obj:
    """Return a pod made from a workload's template; its own copy, free to be changed."""
    metadata = template.get("metadata") or {}
    made: Obj = {"namespace": owner["metadata"]["namespace"], "ownerReferences": [make_owner(owner)]}
    made |= {"name": name} if name else {"generateName": generate_name}
    for part in ("labels", "annotations", "finalizers"):
        if metadata.get(part):
            made[part] = copy_json(metadata[part])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": copy_json(template.get("spec") or {})}


async def slow_start(count: int, work: Callable[[], Awaitable[Obj]]) -> tuple[list[Obj], ApiError | None]:
    """Run `work` `count` times, in batches of 1, 2, 4, …, until one has a failure; the results and the first error."""
    done: list[Obj] = []
    batch = 1
    left = min(count, BURST)
    while left > 0:
        results = await asyncio.gather(*(work() for _ in range(min(batch, left))), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        done += [result for result in results if not isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, ApiError):
                raise failure
            return done, failure
        left -= len(results)
        batch *= 2
    return done, None


def is_namespace_ending(error: ApiError) -> bool:
    """Return a create that failed because its namespace is being deleted: emits no event."""
    causes = (error.details or {}).get("causes") or ()
    return isinstance(error, Forbidden) and any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def _owners(obj: Obj) -> list[Obj]:
    return list(obj["metadata"].get("ownerReferences") or ())


def _still_exists(obj: Obj | None, uid: str) -> bool:
    """Return whether it has this uid and is not being deleted."""
    return obj is not None and obj["metadata"]["uid"] == uid and not is_deleting(obj)

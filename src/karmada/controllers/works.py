"""Works, what they carry, and how every controller writes them: one object for one cluster, with labels to find it by.

`Works.ensure` creates or updates the Work of an object for a cluster. The manifest is mutated here as admission would,
so that a stored Work and one rendered again from the same object are equal, and nothing is written.

What others set on a Work stays: labels, annotations and finalizers are merged, owners set once. The spec is replaced.

Names of Works end in a hash of 32 bits, so anybody who may choose a name can have an object whose Work is named as that
of another. The Work that is there stays that of its object; the other one gets a longer name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from hashlib import sha256
from typing import TypeAlias, TypedDict, Unpack

from karmada.admission.context import new_id
from karmada.admission.work import record
from karmada.api import well_known
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.interpreter.pruning import pruned
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.converge import ResourceWriter
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.writes import Write

Identity: TypeAlias = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object, in whatever version."""


def manifests_of(work: Obj) -> list[Obj]:
    """Return what a Work carries."""
    return ((work.get("spec") or {}).get("workload") or {}).get("manifests") or []


def identity_of(obj: Obj) -> Identity:
    gvk = gvk_of(obj)
    return gvk.group, gvk.kind, *meta.key(obj)


def carries(work: Obj, identity: Identity) -> bool:
    """Return whether one of the manifests of a Work is that of this object."""
    return any(isinstance(manifest, dict) and identity_of(manifest) == identity for manifest in manifests_of(work))


Labels: TypeAlias = Mapping[str, str] | Callable[[Mapping[str, str]], Mapping[str, str]]
"""Labels of a Work, or what makes them from those that it has."""
_MAX_NAME = 253
_BINDING_IDS = (well_known.BINDING_ID, well_known.CLUSTER_BINDING_ID)


class WorkBeingDeleted(ApiError):
    """The old Work is still being deleted: it must be gone before it can be recreated."""

    code = 409

    def __init__(self, key: Key) -> None:
        super().__init__(f"work {key} is being deleted")
        self.key = key


class WorkOfAnother(ApiError):
    """The Work with this name is that of another object: it must not be overwritten."""

    code = 409

    def __init__(self, key: Key) -> None:
        super().__init__(f"work {key} is that of another object")


@lru_cache(maxsize=1024)
def longer_name(name: str, identity: Identity) -> str:
    """Return the name of the Work of an object for which the usual name is taken."""
    digest = sha256("\0".join((name, *identity)).encode()).hexdigest()
    return f"{name[: _MAX_NAME - 1 - len(digest)].rstrip('.-')}-{digest}"


def names_of_work(resource: Obj) -> tuple[str, str]:
    """Return the usual name of the Work of an object, and the one that it has when that is taken."""
    namespace, name = meta.key(resource)
    usual = well_known.work_name(resource["kind"], name, namespace)
    return usual, longer_name(usual, identity_of(resource))


class WorkOptions(TypedDict, total=False):
    name: str
    """Name of the Work; by default it comes from the resource."""
    labels: Labels | None
    """The Work's own, as are annotations."""
    annotations: Mapping[str, str] | None
    owner: Obj | None
    finalizers: Sequence[str]
    suspend_dispatching: bool | None
    """None leaves a field of the spec out."""
    preserve_resources_on_deletion: bool | None


class Works:
    def __init__(self, context: Context, client: Client | None = None) -> None:
        self.informer = context.informers.of(Work.gvr)
        self._writer = ResourceWriter(client or context.client, Work.gvr, self.informer)

    async def ensure(self, cluster: str, resource: Obj, **options: Unpack[WorkOptions]) -> Write:
        """Create or update the Work of `resource` (not mutated) in the cluster's execution namespace.

        WorkBeingDeleted when the old Work is still on its way out.
        """
        return await self.write(self._named(WantedWork(cluster, resource, **options))[0])

    def missing(self, wanted: WantedWork) -> WantedWork | None:
        """Return what is to be written, under the name that it gets; None if a Work is known to be as wanted."""
        wanted, current = self._named(wanted)
        same = current is not None and not meta.is_deleting(current) and wanted.over(current) == current
        return None if same else wanted

    async def write(self, wanted: WantedWork) -> Write:
        """Create or update a Work that is `missing`; see `ensure`."""
        try:
            return await self._converge(wanted)
        except WorkOfAnother:
            if wanted.is_longer:
                raise
            return await self._converge(wanted.longer())

    def _named(self, wanted: WantedWork) -> tuple[WantedWork, Obj | None]:
        """Return what is wanted, under the name that it has or can have by what is known; and the Work of that name."""
        current = self.informer.get(wanted.key)
        if current is not None and wanted.owns(current):
            return wanted, current
        longer = wanted.longer()
        found = self.informer.get(longer.key)
        return (wanted, None) if current is None and found is None else (longer, found)

    async def _converge(self, wanted: WantedWork) -> Write:
        async def make(current: Obj | None) -> Obj:
            if current is None:
                return wanted.fresh()
            if not wanted.owns(current):
                raise WorkOfAnother(wanted.key)
            if meta.is_deleting(current):
                raise WorkBeingDeleted(wanted.key)
            return wanted.over(current)

        written = await self._writer.converge(wanted.key, make)
        assert written is not None
        return written

    async def delete(self, work: Obj) -> None:
        await self._writer.delete(work)


class WantedWork:
    """The wanted Work of an object for a cluster: created, or merged into the existing one."""

    def __init__(self, cluster: str, resource: Obj, **options: Unpack[WorkOptions]) -> None:
        metadata = resource["metadata"]
        name = options.get("name") or well_known.work_name(
            resource["kind"], metadata["name"], metadata.get("namespace", "")
        )
        self.key = Key(well_known.execution_namespace(cluster), name)
        self.is_longer = False
        self._identity = identity_of(resource)
        self._labels = options.get("labels") or {}
        self._annotations = options.get("annotations") or {}
        self._manifest = manifest_of(resource, self.key, self._annotations.get(well_known.CONFLICT_RESOLUTION))
        self._owner = options.get("owner")
        self._finalizers = options.get("finalizers", (well_known.EXECUTION_FINALIZER,))
        self._options: dict[str, bool] = {}
        suspended, preserved = options.get("suspend_dispatching"), options.get("preserve_resources_on_deletion")
        if suspended is not None:
            self._options["suspendDispatching"] = suspended
        if preserved is not None:
            self._options["preserveResourcesOnDeletion"] = preserved

    def longer(self) -> WantedWork:
        """Return the same under the name that it gets when its own is that of another object's Work."""
        longer = copy(self)
        longer.key, longer.is_longer = Key(self.key.namespace, longer_name(self.key.name, self._identity)), True
        metadata = self._manifest["metadata"]
        named = {**metadata["annotations"], well_known.WORK_NAME: longer.key.name}
        longer._manifest = {**self._manifest, "metadata": {**metadata, "annotations": named}}
        return longer

    def owns(self, current: Obj) -> bool:
        """Return whether the Work of this name is that of the object: of the same binding, or with its manifest."""
        wanted, labels = self._labels, meta.labels(current)
        if not callable(wanted):
            for label in _BINDING_IDS:
                if labels.get(label) and labels[label] == wanted.get(label):
                    return True
        return not manifests_of(current) or carries(current, self._identity)

    def fresh(self) -> Obj:
        labels = {**self._labels_over({})}
        labels.setdefault(well_known.WORK_ID, new_id())
        metadata: Obj = {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "labels": labels,
        }
        if self._finalizers:
            metadata["finalizers"] = [*self._finalizers]
        if self._annotations:
            metadata["annotations"] = {**self._annotations}
        if self._owner is not None:
            metadata["ownerReferences"] = [meta.make_owner(self._owner)]
        return {
            "apiVersion": Work.gvk.api_version,
            "kind": Work.gvk.kind,
            "metadata": metadata,
            "spec": self._spec(labels[well_known.WORK_ID]),
        }

    def over(self, current: Obj) -> Obj:
        metadata = {**current["metadata"]}
        labels = {**meta.labels(current), **self._labels_over(meta.labels(current))}
        labels[well_known.WORK_ID] = labels.get(well_known.WORK_ID) or new_id()
        metadata["labels"] = labels
        if self._annotations:
            metadata["annotations"] = {**meta.annotations(current), **self._annotations}
        if not set(meta.finalizers(current)).issuperset(self._finalizers):
            metadata["finalizers"] = sorted({*meta.finalizers(current), *self._finalizers})
        return {**current, "metadata": metadata, "spec": self._spec(labels[well_known.WORK_ID])}

    def _labels_over(self, current: Mapping[str, str]) -> Mapping[str, str]:
        return self._labels(current) if callable(self._labels) else self._labels

    def _spec(self, work_id: str) -> Obj:
        record(self._manifest, work_id)
        return {"workload": {"manifests": [self._manifest]}, **self._options}


def manifest_of(resource: Obj, work: Key, conflict_resolution: str | None = None) -> Obj:
    """Return the manifest of an object in a Work: pruned, and annotated with the Work it belongs to."""
    metadata = resource["metadata"]
    labels = {**(metadata.get("labels") or {}), well_known.MANAGED: well_known.TRUE}
    annotations = {
        **(metadata.get("annotations") or {}),
        well_known.TEMPLATE_UID: metadata.get("uid", ""),
        well_known.WORK_NAMESPACE: work.namespace,
        well_known.WORK_NAME: work.name,
    }
    if conflict_resolution is not None:
        annotations[well_known.CONFLICT_RESOLUTION] = conflict_resolution
    return pruned({**resource, "metadata": {**metadata, "labels": labels, "annotations": annotations}})

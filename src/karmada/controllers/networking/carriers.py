"""Carriers: suspended Works that hold an EndpointSlice of a member, so that the control plane has it.

Two flows collect EndpointSlices: ServiceExports and MultiClusterServices. Both may want the same one, which then has
one carrier: the label managed-by lists the flows that have it, and each has labels of its own that name the service.
The flow that lets go last deletes the carrier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from karmada.api import well_known
from karmada.api.work import Work
from karmada.controllers.context import Context
from karmada.controllers.works import Works
from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.writes import delete_if_exists, retry_on_conflict

SERVICE_NAME: Final = "kubernetes.io/service-name"
SLICE_KIND: Final = "EndpointSlice"
_MANAGED_BY: Final = well_known.ENDPOINT_SLICE_WORK_MANAGED_BY
_OURS: Final = frozenset({well_known.ENDPOINT_SLICE_CONTROLLER, well_known.ENDPOINT_SLICE_DISPATCHER})


@dataclass(frozen=True, slots=True)
class Flow:
    """`token` is its name in the label managed-by; the two labels name the service; the finalizer is of who uses it."""

    token: str
    namespace_label: str
    name_label: str
    finalizer: str


EXPORTS: Final = Flow(
    "ServiceExport",
    well_known.ENDPOINT_SLICE_NAMESPACE,
    well_known.ENDPOINT_SLICE_NAME,
    well_known.ENDPOINT_SLICE_FINALIZER,
)
MULTI_CLUSTER_SERVICES: Final = Flow(
    "MultiClusterService",
    well_known.MULTICLUSTER_SERVICE_NAMESPACE,
    well_known.MULTICLUSTER_SERVICE_NAME,
    well_known.ENDPOINT_SLICE_DISPATCH_FINALIZER,
)
FLOWS: Final = (EXPORTS, MULTI_CLUSTER_SERVICES)


# reading


def is_ours(endpoint_slice: Obj) -> bool:
    """Made by this control plane: collecting it would send it round in a circle."""
    return meta.labels(endpoint_slice).get(well_known.ENDPOINT_SLICE_MANAGED_BY) in _OURS


def service_of_slice(endpoint_slice: Obj) -> Key | None:
    name = meta.labels(endpoint_slice).get(SERVICE_NAME)
    return Key(meta.namespace(endpoint_slice), name) if name else None


def carried(work: Obj) -> Obj | None:
    """Return the EndpointSlice that a carrier holds; None for any other Work."""
    spec = work.get("spec")
    if not spec or not spec.get("suspendDispatching"):
        return None
    manifests = (spec.get("workload") or {}).get("manifests") or ()
    if not manifests or not isinstance(manifests[0], dict):
        return None
    return manifests[0] if manifests[0].get("kind") == SLICE_KIND else None


def flows_of(work: Obj) -> list[str]:
    return [token for token in meta.labels(work).get(_MANAGED_BY, "").split(".") if token]


def service_of(work: Obj, flow: Flow) -> Key | None:
    """Return the service for which a flow has a carrier; None if it does not have it."""
    labels = meta.labels(work)
    name = labels.get(flow.name_label)
    return Key(labels.get(flow.namespace_label, ""), name) if name and flow.token in flows_of(work) else None


# writing


class Carriers:
    def __init__(self, context: Context, client: Client) -> None:
        self._works = Works(context, client)
        self._client = client
        self._clock = context.clock

    async def hold(self, cluster: str, endpoint_slice: Obj, service: Key, flow: Flow) -> None:
        """Have a carrier of the EndpointSlice of a cluster for a flow."""

        def labels(current: Mapping[str, str]) -> dict[str, str]:
            tokens = [token for token in current.get(_MANAGED_BY, "").split(".") if token]
            named = {flow.namespace_label: service.namespace, flow.name_label: service.name}
            joined = ".".join([*tokens, *(() if flow.token in tokens else (flow.token,))])
            return {**named, _MANAGED_BY: joined}

        await self._works.ensure(
            cluster, endpoint_slice, labels=labels, finalizers=(flow.finalizer,), suspend_dispatching=True
        )

    async def release(self, work: Obj, flow: Flow) -> None:
        """Give up a carrier that the flow does not want any more."""
        key = key_of(work)

        async def once() -> None:
            try:
                current = await self._client.get(Work.gvr, key.name, key.namespace)
            except NotFound:
                return
            left = [token for token in flows_of(current) if token != flow.token]
            if not left:
                await delete_if_exists(self._client, Work.gvr, key.name, key.namespace, uid=meta.uid(current))
                return
            named = (flow.namespace_label, flow.name_label)
            labels = {label: value for label, value in meta.labels(current).items() if label not in named}
            labels[_MANAGED_BY] = ".".join(left)
            released = {**current, "metadata": {**current["metadata"], "labels": labels}}
            if released != current:
                await self._client.update(Work.gvr, released)

        await retry_on_conflict(once, clock=self._clock)

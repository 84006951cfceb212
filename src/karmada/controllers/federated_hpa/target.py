"""What a FederatedHPA scales: its template, the binding of that, and the clusters it is scheduled to."""

from __future__ import annotations

from typing import Final, NamedTuple

from karmada.api import well_known
from karmada.api.cluster import Cluster
from karmada.api.work import ResourceBinding
from karmada.controllers.cluster_state import is_ready
from karmada.controllers.context import Context
from karmada.controllers.indexes import BY_POLICY, policy_ids
from karmada.kube.client.discovery import NoMatch
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.shapes import METADATA
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key

_POLICY_LABELS: Final = (well_known.POLICY_ID, well_known.CLUSTER_POLICY_ID)


class Step(NamedTuple):
    """A step that may fail: the reasons of its event and of its condition, which may differ, and what it does."""

    event: str
    reason: str
    what: str


GET_SCALE: Final = Step("FailedGetScale", "FailedGetScale", "get the target's current scale")
_GET_TEMPLATE: Final = Step("FailedGetScaleTargetRef", "FailedGetScaleTargetRef", "get the target reference object")
_GET_BINDING: Final = Step("FailedGetBindings", "FailedGetBinding", "get the binding by scaleTargetRef")
_GET_CLUSTERS: Final = Step(
    "FailedGetTargetClusters", "FailedGetTargetClusters", "get the target clusters from binding"
)


class TargetFailed(Exception):
    """`text` is for people, in an event and a condition."""

    def __init__(self, step: Step, text: str) -> None:
        super().__init__(text)
        self.step = step
        self.text = text


class Target(NamedTuple):
    gvr: GVR
    name: str
    namespace: str
    ready: list[str]
    """Clusters, in the order of the binding."""
    unready: list[str]


class Targets:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clusters = context.informers.of(Cluster.gvr)
        self._bindings = context.informers.of(ResourceBinding.gvr, indexes={BY_POLICY: policy_ids})

    async def of(self, hpa: Obj) -> Target:
        """TargetFailed when there is none yet."""
        ref, namespace = hpa["spec"]["scaleTargetRef"], meta.namespace(hpa)
        api_version = ref.get("apiVersion") or ""
        if api_version.count("/") > 1:
            raise TargetFailed(GET_SCALE, f"unexpected GroupVersion string: {api_version}")
        gvk = GVK.parse(api_version, ref["kind"])
        try:
            gvr = await self._client.resource(gvk)
            template = await self._client.get(gvr, ref["name"], namespace, shape=METADATA)
        except NoMatch:
            raise TargetFailed(_GET_TEMPLATE, f'no matches for kind "{gvk.kind}" in version "{api_version}"') from None
        except ApiError as error:
            raise TargetFailed(_GET_TEMPLATE, error.message) from error
        except (ConnectionFailed, TimeoutError) as error:
            raise TargetFailed(_GET_TEMPLATE, str(error)) from error
        ready, unready = self._by_readiness(self._binding(template, ref))
        return Target(gvr, ref["name"], namespace, ready, unready)

    def _binding(self, template: Obj, ref: Obj) -> Obj:
        labels = meta.labels(template)
        if not labels:
            raise TargetFailed(_GET_BINDING, "target resource has no label")
        policy = next((labels[label] for label in _POLICY_LABELS if labels.get(label)), "")
        if not policy:
            raise TargetFailed(_GET_BINDING, "no label of policy permanent-id found")
        if not self._bindings.has(BY_POLICY, policy):
            raise TargetFailed(_GET_BINDING, "length of binding list is zero")
        binding = self._bindings.get(Key(meta.namespace(template), well_known.binding_name(ref["kind"], ref["name"])))
        if binding is None or policy not in policy_ids(binding) or not _is_of(binding, ref):
            raise TargetFailed(_GET_BINDING, "no binding matches the target resource")
        return binding

    def _by_readiness(self, binding: Obj) -> tuple[list[str], list[str]]:
        names = [target["name"] for target in binding["spec"].get("clusters") or ()]
        if not names:
            raise TargetFailed(_GET_CLUSTERS, "binding has no schedulable clusters")
        ready: list[str] = []
        unready: list[str] = []
        for name in names:
            cluster = self._clusters.get(Key("", name))
            if cluster is None:
                raise TargetFailed(_GET_CLUSTERS, f'clusters.cluster.karmada.io "{name}" not found')
            (ready if is_ready(cluster) else unready).append(name)
        return ready, unready


def _is_of(binding: Obj, ref: Obj) -> bool:
    resource = binding["spec"]["resource"]
    return all((resource.get(field) or "") == (ref.get(field) or "") for field in ("apiVersion", "kind", "name"))

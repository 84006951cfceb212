"""A control plane's objects as they are or as they might be, and our own rules run on them; nothing is written to it.

A `World` is what is given over what is read: an object that is put here takes the place of its namesake in the control
plane beneath, of which each list is read once. Without a control plane beneath there is nothing but what is given.
There is no way from here to a write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from karmada.kube.objects import meta
from karmada.kube.objects.errors import Forbidden, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError

if TYPE_CHECKING:
    from karmada.interpreter.interpreter import Interpreter
    from karmada.kube.client.client import Client
    from karmada.kube.client.discovery import Mapping, RESTMapper
    from karmada.kube.runtime.features import FeatureGates
    from karmada.scheduler.decision import Decision
    from karmada.scheduler.estimators.estimator_result import EstimatorResult
    from karmada.scheduler.fitting.situation import Situation
    from karmada.scheduler.fitting.suggestions import Advice
    from karmada.scheduler.fleet import Fleet
    from karmada.scheduler.request import Request
    from karmada.scheduler.service.assembly import Algorithm

ADVICE_SECONDS = 1.0


class World:
    """`plugins` and `feature_gates` are those of the scheduler, as its flags have them."""

    def __init__(self, plugins: str = "*", feature_gates: str = "") -> None:
        """Raise PredictionError for a gate that does not exist, or for plug-ins that cannot be loaded."""
        from karmada.features import default_gates
        from karmada.scheduler.plugins import PluginError
        from karmada.scheduler.service.assembly import assemble

        self.gates: FeatureGates = default_gates()
        self.settings: dict[str, str] = {}
        """Flags of the control plane's controllers; empty if they cannot be read."""
        self.notes: list[str] = []
        """One sentence for each kind that could not be read."""
        self._gates_given, self._plugins = feature_gates, plugins.split(",")
        try:
            self.gates.set(feature_gates)
            self._algorithm: Algorithm = assemble(self.gates, self._plugins)
        except (ValueError, PluginError) as error:
            raise PredictionError(str(error)) from error
        self._beneath: Client | None = None
        self._given: dict[GVR, dict[tuple[str, str], Obj]] = {}
        self._read: dict[tuple[GVR, str], list[Obj]] = {}
        self._estimates: dict[bytes, list[EstimatorResult]] = {}
        self._fleet: Fleet | None = None
        self._interpreter: Interpreter | None = None

    async def over(self, client: Client) -> Self:
        """Put a control plane beneath: its objects, its settings, and its gates, but for those that are given."""
        from karmada.features import FEATURES
        from karmada.prediction.running import running
        from karmada.scheduler.service.assembly import assemble

        found = await running(client)
        self._beneath, self.settings = client, found.settings
        self.gates.set_values({name: on for name, on in found.gates.items() if name in FEATURES})
        self.gates.set(self._gates_given)
        self._algorithm = assemble(self.gates, self._plugins)
        return self

    # objects

    @property
    def mapper(self) -> RESTMapper:
        """Return the kinds that the control plane beneath serves."""
        assert self._beneath is not None, "there is no control plane beneath"
        return self._beneath.mapper

    def put(self, kind: GVR, obj: Obj) -> None:
        self._given.setdefault(kind, {})[meta.key(obj)] = obj
        self._fleet = None

    def given(self, kind: GVR) -> list[Obj]:
        """Return the objects of a kind that were put here."""
        return list(self._given.get(kind, {}).values())

    def all_given(self) -> Iterator[tuple[GVR, Obj]]:
        """Yield everything that was put here, in that order of kinds."""
        return ((kind, obj) for kind, objects in self._given.items() for obj in objects.values())

    async def get(self, kind: GVR, name: str, namespace: str = "") -> Obj:
        found = self._given.get(kind, {}).get((namespace, name))
        if found is not None:
            return found
        if self._beneath is None:
            raise NotFound(f'{kind.resource} "{name}" not found')
        return await self._beneath.get(kind, name, namespace)

    async def objects(self, kind: GVR, namespace: str = "") -> list[Obj]:
        """Return the objects of a kind, of all namespaces if none is named."""
        given = {key: obj for key, obj in self._given.get(kind, {}).items() if namespace in ("", key[0])}
        beneath = await self._list_beneath(kind, namespace)
        return list({**{meta.key(obj): obj for obj in beneath}, **given}.values()) if given else beneath

    async def _list_beneath(self, kind: GVR, namespace: str) -> list[Obj]:
        if self._beneath is None:
            return []
        if (kind, namespace) not in self._read:
            everywhere = self._read.get((kind, ""))
            self._read[kind, namespace] = (
                (await self._beneath.list_all(kind, namespace)).items
                if everywhere is None
                else [obj for obj in everywhere if meta.namespace(obj) == namespace]
            )
        return self._read[kind, namespace]

    async def events(self, obj: Obj) -> list[Obj]:
        """Return the Events about an object."""
        from karmada.kube.objects.gvrs import EVENTS

        if self._beneath is None:
            return []
        metadata = obj["metadata"]
        selector = f"involvedObject.uid={metadata['uid']}"
        namespace = metadata.get("namespace", "default")
        return (await self._beneath.list_all(EVENTS, namespace, field_selector=selector)).items

    async def readable(self, kind: GVR, namespace: str = "") -> list[Obj]:
        """Return the objects of a kind; none for those who may not read them, or where they are not served."""
        try:
            return await self.objects(kind, namespace)
        except (Forbidden, NotFound):
            return []

    async def clusters(self, *known: str) -> list[Obj]:
        """Return the Clusters; PredictionError if one that has to be among them is not joined."""
        from karmada.api.cluster import Cluster

        clusters = await self.objects(Cluster.gvr)
        names = sorted(map(meta.name, clusters))
        for name in sorted(known):
            if name not in names:
                raise PredictionError(f'cluster "{name}" is not joined (known: {", ".join(names) or "none"})')
        return clusters

    async def mapping(self, gvk: GVK) -> Mapping:
        """Return how a kind is served; NoMatch if it is neither served nor defined by what was put here."""
        from karmada.kube.client.discovery import NoMatch

        try:
            return await self.mapper.mapping(gvk)
        except NoMatch:
            found = next(filter(None, (_mapping(one, gvk) for one in self.given(CRDS))), None)
            if found is None:
                raise
            self._read[found.gvr, ""] = []
            return found

    def define(self, definition: Obj) -> None:
        """Put a CustomResourceDefinition here; PredictionError for one that is incomplete."""
        try:
            _mapping(definition, GVK("", "", ""))
            _enablement(definition)
        except (KeyError, TypeError, AttributeError):
            name = meta.name(definition)
            raise PredictionError(f'CustomResourceDefinition "{name}": spec is incomplete') from None
        self.put(CRDS, definition)

    async def enable(self, cluster: str, definition: Obj) -> None:
        """Have a cluster serve what a CustomResourceDefinition defines."""
        from karmada.api.cluster import Cluster

        found = await self.get(Cluster.gvr, cluster)
        status = found.get("status") or {}
        enabled = [*(status.get("apiEnablements") or ()), *_enablement(definition)]
        self.put(Cluster.gvr, {**found, "status": {**status, "apiEnablements": enabled}})

    # rules

    async def fleet(self) -> Fleet:
        """Return the clusters for the scheduler, which keeps what it has found out about them."""
        from karmada.scheduler.fleet import Fleet

        if self._fleet is None:
            self._fleet = await asyncio.to_thread(Fleet.of, await self.clusters())
        return self._fleet

    async def interpreter(self) -> Interpreter:
        """Return the interpreter with the layers of the control plane, except webhooks, which only it can reach."""
        from karmada.api.config import ResourceInterpreterCustomization
        from karmada.interpreter.assembly import interpreter_with
        from karmada.kube.objects.clock import SYSTEM

        if self._interpreter is None:
            customizations = await self.readable(ResourceInterpreterCustomization.gvr)
            if customizations:
                from karmada.interpreter.lua.layer import Declarative

                self._interpreter = interpreter_with(SYSTEM, self.gates, Declarative(customizations))
            else:
                self._interpreter = interpreter_with(SYSTEM, self.gates)
        return self._interpreter

    @property
    def components(self) -> bool:
        """Return True if the scheduler places complete sets of components."""
        return self._algorithm.profile.components

    async def situation(self, spec: Obj, *, affinity_name: str = "", fresh: bool = False, into: str = "") -> Situation:
        """Return everything that the decision on a binding's spec depends on."""
        from karmada.scheduler.fitting.situation import Situation
        from karmada.scheduler.request import Request

        namespace = (spec.get("resource") or {}).get("namespace") or ""
        peers = _Peers(await self._peers(namespace))
        request = Request(spec, affinity_name=affinity_name, fresh=fresh, peers=peers)
        estimates, quotas = await self._estimates_of(request), await self._quotas(namespace)
        return Situation(request, await self.fleet(), estimates, quotas, into)

    def decide(self, situation: Situation) -> Decision:
        from karmada.scheduler.algorithm import schedule

        estimators = [*self._algorithm.local, *situation.answers]
        return schedule(situation.request, situation.fleet, estimators, self._algorithm.profile)

    def advise(self, situation: Situation, decision: Decision, *, seconds: float = ADVICE_SECONDS) -> Advice | None:
        """Return what would make it fit (into a cluster), looked for so long; None if it does."""
        from karmada.scheduler.fitting.judge import Judge
        from karmada.scheduler.fitting.suggestions import suggest

        judge = Judge(self._algorithm.local, self._algorithm.profile, seconds=seconds)
        return suggest(replace(situation, request=decision.attempts[0].request), judge, decision)

    async def _peers(self, namespace: str) -> list[Obj]:
        """Return the bindings that may matter for one in this namespace."""
        from karmada.api.work import ResourceBinding

        if not namespace or not self.gates.enabled("WorkloadAffinity"):
            return []
        return await self.objects(ResourceBinding.gvr, namespace)

    async def _quotas(self, namespace: str) -> list[Obj]:
        """Return the federated quotas that a binding must not exceed; none for those who may not read them."""
        from karmada.api.policy import FederatedResourceQuota

        if not namespace or not self.gates.enabled("FederatedQuotaEnforcement"):
            return []
        return await self.readable(FederatedResourceQuota.gvr, namespace)

    async def _estimates_of(self, request: Request) -> list[EstimatorResult]:
        """Return what the estimators of the running scheduler report; nothing if it does not run in the control plane.

        It is requested once for all workloads with equal requirements.
        """
        import orjson

        from karmada.prediction.running import estimates
        from karmada.scheduler.algorithm import in_sets

        if self._beneath is None or not request.is_workload:
            return []
        sets = in_sets(request, self._algorithm.profile)
        needs = [request.resource.get("namespace"), request.components] if sets else request.requirements
        key = orjson.dumps([sets, needs])
        if key not in self._estimates:
            own = {one.name for one in self._algorithm.local}
            found = await estimates(self._beneath, request, sets=sets)
            self._estimates[key] = [one for one in found if one.name not in own]
        return self._estimates[key]


def _enablement(definition: Obj) -> list[Obj]:
    spec = definition["spec"]
    resource = {"name": spec["names"]["plural"], "kind": spec["names"]["kind"]}
    return [{"groupVersion": f"{spec['group']}/{one['name']}", "resources": [resource]} for one in spec["versions"]]


def _mapping(definition: Obj, gvk: GVK) -> Mapping | None:
    from karmada.kube.client.discovery import Mapping

    spec = definition["spec"]
    namespaced = spec["scope"] == "Namespaced"
    served = {version["name"] for version in spec["versions"] if version.get("served", True)}
    if (spec["group"], spec["names"]["kind"]) != (gvk.group, gvk.kind) or gvk.version not in served:
        return None
    return Mapping(GVR(gvk.group, gvk.version, spec["names"]["plural"]), gvk, namespaced)


class _Peers:
    def __init__(self, bindings: Sequence[Obj]) -> None:
        self._bindings = bindings

    def affinity(self, group: str) -> Iterable[Obj]:
        return self._in_group("affinityGroup", group)

    def anti_affinity(self, group: str) -> Iterable[Obj]:
        return self._in_group("antiAffinityGroup", group)

    def _in_group(self, which: str, group: str) -> list[Obj]:
        return [one for one in self._bindings if (one["spec"].get("workloadAffinityGroups") or {}).get(which) == group]

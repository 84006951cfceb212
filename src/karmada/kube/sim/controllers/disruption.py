"""PodDisruptionBudgets: how many more pods may be evicted right now.

The healthy pods that a budget selects are compared with those that must stay. The expected number of pods comes from
the scale of their controllers; a budget with an absolute minAvailable needs none. Evictions record their pods in
status.disruptedPods; such a pod counts as gone until it is deleted, or for two minutes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import BUDGETS, PODS
from karmada.kube.objects.meta import controller_of, generation, is_deleting, set_condition
from karmada.kube.objects.podstate import is_ready
from karmada.kube.objects.selectors import labels_from
from karmada.kube.objects.times import parse_time
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Retry, Watch, requeue
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.amounts import amount
from karmada.kube.sim.controllers.pod_selection import PodSelection

DELETION_SECONDS = 120.0
"""Seconds within which an evicted pod must be deleted to count as disrupted."""
_SCALED = {
    ("apps", "ReplicaSet"): GVR("apps", "v1", "replicasets"),
    ("apps", "StatefulSet"): GVR("apps", "v1", "statefulsets"),
    ("apps", "Deployment"): GVR("apps", "v1", "deployments"),
    ("", "ReplicationController"): GVR("", "v1", "replicationcontrollers"),
}


class NoScale(Exception):
    """The expected number of pods cannot be determined."""


class Budget(NamedTuple):
    expected: int
    desired: int


class Disrupted(NamedTuple):
    """Evicted pods that are not deleted yet, those that were not deleted in time, and the seconds to the next check."""

    pending: dict[str, str]
    staying: list[Obj]
    recheck: float | None


def still_disrupted(recorded: dict[str, str], pods: Iterable[Obj], now: float) -> Disrupted:
    pending: dict[str, str] = {}
    staying: list[Obj] = []
    recheck: float | None = None
    for pod in pods:
        since = recorded.get(pod["metadata"]["name"])
        if since is None or is_deleting(pod):
            continue
        until = parse_time(since) + DELETION_SECONDS
        if until <= now:
            staying.append(pod)
            continue
        pending[pod["metadata"]["name"]] = since
        recheck = until if recheck is None else min(recheck, until)
    return Disrupted(pending, staying, recheck)


def status_of(budget: Obj, counts: Budget, healthy: int, pending: dict[str, str], now: float) -> Obj:
    before, observed = budget.get("status") or {}, generation(budget)
    allowed = max(0, healthy - counts.desired) if counts.expected > 0 else 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": observed,
    }
    status = {
        "observedGeneration": observed,
        "currentHealthy": healthy,
        "desiredHealthy": counts.desired,
        "expectedPods": counts.expected,
        "disruptionsAllowed": allowed,
        "conditions": set_condition(before.get("conditions"), condition, now),
    }
    return {**status, "disruptedPods": pending} if pending else status


def _seen_by_budgets(pod: Obj) -> tuple[object, ...]:
    return is_ready(pod), is_deleting(pod), pod["metadata"].get("labels"), pod["metadata"].get("ownerReferences")


class DisruptionBudgets(Reconciler):
    name = "disruption-controller"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = context.client()
        self._recorder = context.recorder("controllermanager")
        self._budgets: Informer = context.informers.of(BUDGETS)
        self._selection = PodSelection(context.informers)
        self._scaled = {kind: context.informers.of(gvr) for kind, gvr in _SCALED.items()}
        self.watches = (
            Watch(BUDGETS, changed=(*SPEC_OR_DELETION, "status.disruptedPods")),
            Watch(PODS, when=self._matters, map_to=self._budgets_of),
        )

    def _matters(self, old: Obj | None, new: Obj | None) -> bool:
        if not len(self._budgets):
            return False
        return old is None or new is None or _seen_by_budgets(old) != _seen_by_budgets(new)

    def _budgets_of(self, pod: Obj) -> Iterable[Key]:
        budgets = self._budgets.list(pod["metadata"]["namespace"])
        own = pod["metadata"].get("labels")
        return [key_of(b) for b in budgets if labels_from((b.get("spec") or {}).get("selector")).matches(own)]

    async def reconcile(self, key: Key) -> Result:
        budget = self._budgets.get(key)
        if budget is None:
            return Done
        pods = self._selection.of(key.namespace, labels_from((budget.get("spec") or {}).get("selector")))
        if not pods:
            self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        try:
            counts = await self._counts(budget, pods)
        except NoScale as problem:
            await self._fail(budget, str(problem))
            return Retry
        now = self._context.clock.now()
        recorded = (budget.get("status") or {}).get("disruptedPods") or {}
        disrupted = still_disrupted(recorded, pods, now)
        for pod in disrupted.staying:
            message = f"Pod was expected by PDB {key.namespace}/{key.name} to be deleted but it wasn't"
            self._recorder.event(pod, WARNING, "NotDeleted", message)
        healthy = sum(
            1 for p in pods if is_ready(p) and not is_deleting(p) and p["metadata"]["name"] not in disrupted.pending
        )
        await self._context.put_status(BUDGETS, budget, status_of(budget, counts, healthy, disrupted.pending, now))
        return requeue(disrupted.recheck - now) if disrupted.recheck is not None else Done

    async def _fail(self, budget: Obj, problem: str) -> None:
        """If the expected pods cannot be determined, no disruption is allowed."""
        message = f"Failed to calculate the number of expected pods: {problem}"
        self._recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", message)
        status = budget.get("status") or {}
        condition = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "SyncFailed",
            "message": problem,
            "observedGeneration": generation(budget),
        }
        conditions = set_condition(status.get("conditions"), condition, self._context.clock.now())
        counts = {key: status.get(key, 0) for key in ("currentHealthy", "desiredHealthy", "expectedPods")}
        await self._context.put_status(
            BUDGETS, budget, {**status, **counts, "disruptionsAllowed": 0, "conditions": conditions}
        )

    # expected pods

    async def _counts(self, budget: Obj, pods: list[Obj]) -> Budget:
        spec = budget.get("spec") or {}
        least, most_missing = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most_missing is not None:
            expected = await self._expected(budget, pods)
            return Budget(expected, max(0, expected - amount(most_missing, expected, up=True)))
        if isinstance(least, str):
            expected = await self._expected(budget, pods)
            return Budget(expected, amount(least, expected, up=True))
        return Budget(len(pods), least or 0)

    async def _expected(self, budget: Obj, pods: list[Obj]) -> int:
        """Return the scales of all owners; each owner's once."""
        scales: dict[str, int] = {}
        owners: dict[str, tuple[Obj, Obj]] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None:
                owners.setdefault(owner["uid"], (owner, pod))
        unmanaged = any(controller_of(pod) is None for pod in pods)
        for owner, pod in owners.values():
            uid, replicas = await self._scale(owner, pod)
            scales[uid] = replicas
        if unmanaged:
            self._warn_of_unmanaged(budget)
        return sum(scales.values())

    async def _scale(self, owner: Obj, pod: Obj) -> tuple[str, int]:
        """Uid and replicas of the scale owner: a Deployment for its ReplicaSets."""
        namespace = pod["metadata"]["namespace"]
        gvk = GVK.parse(owner["apiVersion"], owner["kind"])
        informer = self._scaled.get((gvk.group, gvk.kind))
        if informer is None:
            return await self._scale_by_subresource(gvk, owner, pod)
        found = informer.get(Key(namespace, owner["name"]))
        if found is None or found["metadata"]["uid"] != owner["uid"]:
            raise NoScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        above = controller_of(found)
        if gvk.kind == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
            return await self._scale(above, pod)
        return owner["uid"], int(found["spec"].get("replicas", 1))

    async def _scale_by_subresource(self, gvk: GVK, owner: Obj, pod: Obj) -> tuple[str, int]:
        try:
            mapping = await self._client.mapper.mapping(gvk)
        except NoMatch as error:
            raise NoScale(str(error)) from error
        if "scale" not in mapping.subresources:
            raise NoScale(f"{mapping.gvr.group_resource} does not implement the scale subresource")
        try:
            scale = await self._client.get(
                mapping.gvr, owner["name"], pod["metadata"]["namespace"], subresource="scale"
            )
        except NotFound:
            raise NoScale(f'found no controllers for pod "{pod["metadata"]["name"]}"') from None
        except ApiError as error:
            raise NoScale(error.message) from error
        return owner["uid"], int((scale.get("spec") or {}).get("replicas") or 0)

    def _warn_of_unmanaged(self, budget: Obj) -> None:
        selector = labels_from((budget.get("spec") or {}).get("selector"))
        message = (
            f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. "
            "As a result, the status of the PDB cannot be calculated correctly, which may result in undefined "
            'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
        )
        self._recorder.event(budget, WARNING, "UnmanagedPods", message)

"""Application failover: evicts a resource from clusters in which it has been unhealthy for too long.

For each binding whose policy has application failover, it records since when a cluster reports it Unhealthy; any
other report forgets it. The memory is this process's: after a restart the toleration begins anew.
"""

from __future__ import annotations

from karmada.controllers.binding.kinds import CLUSTER_WIDE, NAMESPACED, BindingKind
from karmada.controllers.context import Context
from karmada.controllers.execution.status import UNHEALTHY
from karmada.controllers.failover import tasks
from karmada.controllers.failover.bindings import EvictionBindings
from karmada.controllers.failover.reports import report
from karmada.controllers.failover.state import preserved_state, rules_of
from karmada.controllers.indexes import (
    target_clusters,
    traits_of_binding,
)
from karmada.controllers.templates import ref_of_binding
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.operations import INTERPRET_HEALTH
from karmada.kube.objects.errors import ApiError, Conflict
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Done, Reconciler, Result, Watch, requeue
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key

_DEFAULT_TOLERATION = 300


class ApplicationFailover(Reconciler):
    def __init__(self, context: Context, kind: BindingKind, interpreter: Interpreter) -> None:
        scope = "cluster-resource-binding" if kind is CLUSTER_WIDE else "resource-binding"
        self.name = f"{scope}-application-failover-controller"
        self.workers = kind.syncs(context.settings)
        self._kind = kind
        self._interpreter = interpreter
        self._clock = context.clock
        self._in_grace = context.gates.enabled("GracefulEviction")
        self._carries_state = context.gates.enabled("StatefulFailoverInjection")
        self._recorder = context.recorder(self.name)
        self._bindings = EvictionBindings(context, kind)
        self._since: dict[Key, dict[str, float]] = {}
        """Since when each cluster of a binding reports it Unhealthy, by a clock that never jumps."""
        self.watches = (Watch(kind.gvr, having=(traits_of_binding, "failover")),)

    async def reconcile(self, key: Key) -> Result:
        binding = self._bindings.get(key)
        unhealthy = set() if binding is None or not self._applies(binding) else _unhealthy(binding)
        if binding is None or not unhealthy:
            self._since.pop(key, None)
            return Done
        now = self._clock.monotonic()
        before = self._since.get(key, {})
        since = {cluster: before.get(cluster, now) for cluster in sorted(unhealthy)}
        self._since[key] = since
        toleration = _toleration(binding)
        failed = [cluster for cluster, first in since.items() if now - first >= toleration]
        if failed:
            await self._evict(binding, failed)
            for cluster in failed:
                del since[cluster]
        return requeue(min(since.values()) + toleration - now) if since else Done

    def _applies(self, binding: Obj) -> bool:
        if not _has_policy(binding) or not (binding.get("status") or {}).get("aggregatedStatus"):
            return False
        if self._kind is NAMESPACED and not binding["spec"].get("propagateDeps"):
            return False
        return self._interpreter.enabled(ref_of_binding(binding).gvk, INTERPRET_HEALTH)

    async def _evict(self, binding: Obj, clusters: list[str]) -> None:
        """Evict from all clusters in one write; when one task cannot be made, nothing is written."""

        def make(current: Obj) -> Obj:
            spec: Obj = current["spec"]
            before = list(target_clusters(current))
            for cluster in clusters:
                spec = tasks.evict(spec, cluster, self._task(current, cluster, before))
            return spec

        try:
            await self._bindings.change(binding, make)
        except Conflict:
            raise
        except ApiError:
            for cluster in clusters:
                report(self._recorder, binding, WARNING, tasks.FAILED, f"Evict from cluster {cluster} failed.")
            raise

    def _task(self, binding: Obj, cluster: str, before: list[str]) -> Obj:
        policy = _policy(binding)
        mode = policy.get("purgeMode") or tasks.GRACEFULLY
        task: Obj = {"purgeMode": mode, "reason": tasks.APPLICATION_FAILURE, "producer": self.name}
        rules = rules_of(policy) if self._carries_state else []
        if rules:
            task["preservedLabelState"] = preserved_state(binding, cluster, rules)
            task["clustersBeforeFailover"] = before
        if mode in tasks.IN_GRACE:
            if not self._in_grace:
                raise ApiError(f"GracefulEviction featureGate must be enabled when purgeMode is {mode}")
            if policy.get("gracePeriodSeconds") is not None:
                task["gracePeriodSeconds"] = policy["gracePeriodSeconds"]
        elif mode == tasks.NEVER:
            task["suppressDeletion"] = True
        return task


def _policy(binding: Obj) -> Obj:
    found: Obj = ((binding.get("spec") or {}).get("failover") or {}).get("application") or {}
    return found


def _has_policy(binding: Obj) -> bool:
    return bool(_policy(binding))


def _toleration(binding: Obj) -> float:
    seconds = (_policy(binding).get("decisionConditions") or {}).get("tolerationSeconds")
    return _DEFAULT_TOLERATION if seconds is None else seconds


def _unhealthy(binding: Obj) -> set[str]:
    """Return the targets that report it Unhealthy; those that it is leaving are targets no longer."""
    reported = {
        item["clusterName"] for item in binding["status"]["aggregatedStatus"] if item.get("health") == UNHEALTHY
    }
    return reported & set(target_clusters(binding)) - set(tasks.from_clusters(binding))

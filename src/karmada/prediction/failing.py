"""The failure of a cluster: what it becomes and which resources leave it, by the rules of the controllers.

Settings and taint policies are those of the running control plane.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from karmada.api.well_known import TAINT_NOT_READY
from karmada.kube.objects.types import Obj

if TYPE_CHECKING:
    from karmada.prediction.world import World

_UNMOVED: Final = "nothing is moved away from a failed cluster."
DEAD_CLUSTERS: Final[Obj] = {
    "apiVersion": "policy.karmada.io/v1alpha1",
    "kind": "ClusterTaintPolicy",
    "metadata": {"name": "drill"},
    "spec": {
        "addOnConditions": [{"conditionType": "Ready", "operator": "In", "statusValues": ["False", "Unknown"]}],
        "taints": [{"key": TAINT_NOT_READY, "effect": "NoExecute"}],
    },
}
"""The taint policy that a trial or a drill assumes where failover is to be on and no policy is there."""


@dataclass(frozen=True, slots=True)
class Failover:
    """How this control plane reacts to a cluster that is not ready."""

    policies: list[Obj]
    """The ClusterTaintPolicies that are obeyed."""
    obstacle: str = ""
    """Why taints evict nothing, if they do not."""

    def failed(self, cluster: Obj) -> Obj:
        """Return the cluster as it is once it is known to have failed."""
        from karmada.controllers.cluster.taints import taints_for
        from karmada.controllers.cluster_state import ready_condition
        from karmada.controllers.cluster_status.probe import CONDITIONS, Health
        from karmada.controllers.failover.taint_policies import taints_by
        from karmada.kube.objects import meta

        now = time.time()
        status = cluster.get("status") or {}
        conditions = meta.set_condition(status.get("conditions"), CONDITIONS[Health.OFFLINE], now)
        cluster = {**cluster, "status": {**status, "conditions": conditions}}
        taints = taints_for(cluster["spec"].get("taints") or (), ready_condition(cluster), now)
        cluster = {**cluster, "spec": {**cluster["spec"], "taints": taints}}
        return {**cluster, "spec": {**cluster["spec"], "taints": taints_by(self.policies, cluster, now)}}

    def reason_to_stay(self, spec: Obj, cluster: Obj) -> str:
        """Return why a resource stays in a cluster that has failed; empty when it leaves it, sooner or later."""
        from karmada.api.taints import FOREVER, no_execute_taints, tolerated_until

        if self.obstacle:
            return f"{self.obstacle}: {_UNMOVED}"
        taints = no_execute_taints(cluster)
        if not taints:
            return f"no ClusterTaintPolicy gives a cluster that is not ready a NoExecute taint: {_UNMOVED}"
        tolerations = (spec.get("placement") or {}).get("clusterTolerations") or []
        if tolerated_until(taints, tolerations) == FOREVER:
            return "its placement tolerates the taints of the failed cluster for good: it stays there."
        return ""


async def failover_of(world: World, *, assumed: bool) -> Failover:
    """Return how failures are handled; `assumed`: as if failover were on, with a taint policy if there is none."""
    from karmada.api.policy import ClusterTaintPolicy
    from karmada.controllers.setting_metrics import read
    from karmada.kube.objects import meta

    found = await world.objects(ClusterTaintPolicy.gvr)
    policies = sorted(found, key=lambda policy: (meta.creation_time(policy), meta.name(policy)))
    if assumed:
        return Failover(policies or [DEAD_CLUSTERS])
    if not world.gates.enabled("Failover"):
        return Failover([], "the feature gate Failover is off")
    settings = read(world.settings)
    if not settings.enable_taint_manager or not settings.enable_no_execute_taint_eviction:
        return Failover(policies, "--enable-no-execute-taint-eviction is off")
    return Failover(policies)

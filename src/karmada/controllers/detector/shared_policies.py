"""Where replicas share the detector by namespace: each requeues its own templates when a cluster-wide policy changes.

One replica reconciles the policy itself: what it releases, what it preempts, its finalizer. The templates that the
policy has claimed or may claim are in every namespace, so every replica requeues those among them that are its own.
"""

from __future__ import annotations

from karmada.controllers.detector.claims import CLUSTER_POLICIES
from karmada.controllers.detector.detector import Detector
from karmada.controllers.detector.policy import requeue_claimed, requeue_waiting, watch
from karmada.controllers.templates import Ref, ref_of_binding
from karmada.kube.objects import meta
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.sharing import everywhere
from karmada.kube.runtime.time_slice import TimeSlice


class SharedPolicies(Reconciler):
    name = "cluster-propagation-policy-requeue"
    options = ControllerOptions(shard_of=everywhere)
    watches = (watch(CLUSTER_POLICIES),)

    def __init__(self, detector: Detector) -> None:
        self._detector = detector

    async def reconcile(self, key: Key) -> Result:
        detector = self._detector
        policy = detector.policies.get(CLUSTER_POLICIES, key)
        if policy is None or meta.is_deleting(policy):
            return Done  # templates that are released change, which requeues them
        bound: set[Ref] = set()
        turn = TimeSlice()
        for gvr, name in detector.bindings.of_policy(CLUSTER_POLICIES, policy):
            binding = detector.bindings.get(gvr, name)
            if binding is not None:
                bound.add(ref_of_binding(binding))
            if turn.is_over():
                await turn.next()
        await requeue_claimed(detector, CLUSTER_POLICIES, policy, bound)
        await requeue_waiting(detector, CLUSTER_POLICIES, policy)
        return Done

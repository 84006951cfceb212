"""Preemption: a policy takes the templates it selects from policies with a lower priority.

A namespaced policy preempts a cluster-wide one whatever its priority; a cluster-wide one never preempts a namespaced
one. When a policy's priority is lowered, the policies that may now preempt it are requeued.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from karmada.controllers.context import Context
from karmada.controllers.detector.claims import CLUSTER_POLICIES, POLICIES, PolicyKind
from karmada.controllers.detector.detector import Detector
from karmada.controllers.detector.policies import explicit_priority, selectors_of
from karmada.controllers.errors import raise_together
from karmada.controllers.templates import Ref
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.logging import get_logger

_GATE: Final = "PropagationPolicyPreemption"
log = get_logger("detector")


def preempts(policy: Obj) -> bool:
    return bool((policy.get("spec") or {}).get("preemption") == "Always")


class Preemption:
    def __init__(self, context: Context, detector: Detector, kind: PolicyKind) -> None:
        self._enabled = context.gates.enabled(_GATE)
        self._detector = detector
        self._kind = kind
        self._priorities: dict[Key, int] = {}
        """Priority of each policy when it was last reconciled."""
        self._add: Callable[[Key], None] | None = None

    def attach(self, add: Callable[[Key], None]) -> None:
        self._add = add

    # lowered priorities

    async def noticed(self, policy: Obj) -> None:
        """Requeue the policies that could not preempt this one before its priority was lowered, the highest first."""
        if not self._enabled:
            return
        key, now = key_of(policy), explicit_priority(policy)
        before = self._priorities.get(key, now)
        if meta.is_deleting(policy):
            self._priorities.pop(key, None)
            return
        self._priorities[key] = now
        if now >= before or self._add is None:
            return
        others = self._detector.policies.scan(self._kind, key.namespace)
        freed = [other async for other in others if preempts(other) and now < explicit_priority(other) < before]
        for other in sorted(freed, key=explicit_priority, reverse=True):
            self._add(key_of(other))

    # preemption

    async def run(self, policy: Obj) -> None:
        if not preempts(policy):
            return
        if not self._enabled:
            log.warning("Preemption is switched off", policy=str(key_of(policy)), gate=_GATE)
            return
        failures: list[Exception] = []
        for selector in selectors_of(policy):
            try:
                await self._take(policy, selector)
            except ApiError as error:
                failures.append(error)
        raise_together(failures)

    async def _take(self, policy: Obj, selector: Obj) -> None:
        ref = Ref(gvk_of(selector), selector.get("namespace") or "", selector.get("name") or "")
        template = await self._detector.kinds.find(ref)
        if template is None or meta.is_deleting(template):
            return
        owner = self._kind.claim_on(template)
        if owner is not None and owner != key_of(policy) and await self._outranks(policy, owner):
            await self._claim(template, policy, self._kind, owner)
        elif self._kind is POLICIES:
            owner = CLUSTER_POLICIES.claim_on(template)
            if owner is not None:
                await self._claim(template, policy, CLUSTER_POLICIES, owner)

    async def _outranks(self, policy: Obj, owner: Key) -> bool:
        policies = self._detector.policies
        current = policies.get(self._kind, owner) or await policies.live(self._kind, owner)
        if current is None:
            raise NotFound(f'{self._kind.gvr.group_resource} "{owner.name}" not found')
        return explicit_priority(policy) > explicit_priority(current)

    async def _claim(self, template: Obj, policy: Obj, loser_kind: PolicyKind, loser: Key) -> None:
        winner = self._kind.full_title(key_of(policy))
        winner = winner[0].upper() + winner[1:]
        lost = loser_kind.full_title(loser)
        recorder = self._detector.recorder
        try:
            await self._detector.claim(template, self._kind, policy)
        except ApiError as error:
            message = f"{winner} failed to preempt {lost}: {error}"
            recorder.event(template, WARNING, "PreemptPolicyFailed", message)
            raise
        recorder.event(template, NORMAL, "PreemptPolicySucceed", f"{winner} preempted {lost} successfully")

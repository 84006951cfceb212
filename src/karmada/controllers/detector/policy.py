"""The reconciler of policies: which templates to requeue, and which to release, when a policy changes or is deleted.

What a policy has claimed is found by its permanent id: on bindings when it changes, on templates when it is deleted.
What it may claim is among the waiting templates.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from karmada.admission.limits import excess
from karmada.api.matching import MISMATCH
from karmada.controllers.concurrently import for_each
from karmada.controllers.context import Context
from karmada.controllers.detector.claims import POLICIES, PolicyKind
from karmada.controllers.detector.detector import Detector
from karmada.controllers.detector.policies import is_lazy, selectors_of
from karmada.controllers.detector.preemption import Preemption
from karmada.controllers.templates import Ref
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import WARNING
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.queue import Priority
from karmada.kube.runtime.sharing import by_namespace
from karmada.kube.runtime.time_slice import TimeSlice, in_slices
from karmada.kube.runtime.writes import remove_finalizer


def watch(kind: PolicyKind) -> Watch:
    return Watch(kind.gvr, on=("ADDED", "MODIFIED"), changed=SPEC_OR_DELETION)


class _Claimed(NamedTuple):
    """A template, and its binding."""

    template: Ref
    bindings: GVR
    binding: Key


class PolicyController(Reconciler):
    """The reconciler of one of the two kinds of policies."""

    options = ControllerOptions(shard_of=by_namespace)

    def __init__(self, context: Context, detector: Detector, kind: PolicyKind) -> None:
        self.name = f"{kind.full_noun.replace(' ', '-')}-detector"
        settings = context.settings
        self.workers = (
            settings.concurrent_propagation_policy_syncs
            if kind is POLICIES
            else settings.concurrent_cluster_propagation_policy_syncs
        )
        self.watches = (watch(kind),)
        self._client = context.client
        self._detector = detector
        self._kind = kind
        self._preemption = Preemption(context, detector, kind)

    def attach(self, add: Enqueue) -> None:
        self._preemption.attach(add)

    async def reconcile(self, key: Key) -> Result:
        policy = self._detector.policies.get(self._kind, key)
        if policy is None:
            return Done
        async for selector in in_slices(self._detector.policies.selectors.of(policy)):
            selector.read()
        await self._preemption.noticed(policy)
        if meta.is_deleting(policy):
            await self._release_all(policy)
            await remove_finalizer(self._client, self._kind.gvr, policy, self._kind.finalizer)
            return Done
        for wrong in excess(policy):
            text = f"{wrong} to be handled in good time."
            self._detector.recorder.event(policy, WARNING, "OverLimit", text)
        kept = await self._release_unselected(policy)
        await requeue_claimed(self._detector, self._kind, policy, kept)
        await requeue_waiting(self._detector, self._kind, policy)
        await self._preemption.run(policy)
        return Done

    # claimed templates

    async def _release_unselected(self, policy: Obj) -> dict[Ref, None]:
        """Release templates that the policy no longer selects; return the others that it has bindings of, in order."""
        kinds, bindings, release = self._detector.kinds, self._detector.bindings, self._detector.release
        policies, policy_id = self._detector.policies, self._kind.id_of(policy)
        kept: dict[Ref, None] = {}
        unverified: list[_Claimed] = []
        turn = TimeSlice()
        for gvr, key in bindings.of_policy(self._kind, policy):
            ref = bindings.template_of(gvr, key)
            if ref is None:
                continue
            known = kinds.known(ref)
            if known is not None and policies.selects(policy, known):
                kept[ref] = None
            else:
                unverified.append(_Claimed(ref, gvr, key))
            if turn.is_over():
                await turn.next()

        async def check(claimed: _Claimed) -> None:
            ref, gvr, key = claimed
            template = await kinds.find(ref)
            if template is None or policies.selects(policy, template):
                kept[ref] = None
                return
            await release.one(await kinds.resource(ref), template, self._kind, policy_id)
            binding = bindings.get(gvr, key)
            if binding is not None:
                await release.one(gvr, binding, self._kind, policy_id)

        await for_each(unverified, check)
        return kept

    # deletion

    async def _release_all(self, policy: Obj) -> None:
        policy_id, kinds = self._kind.id_of(policy), self._detector.kinds
        templates: dict[str, Obj] = {}
        for selector in selectors_of(policy):
            namespace, name = selector.get("namespace") or "", selector.get("name") or ""
            for template in await kinds.claimed(gvk_of(selector), namespace, name, self._kind.id_label, policy_id):
                templates[meta.uid(template)] = template

        async def release(template: Obj) -> None:
            await self._detector.release.template(self._kind, policy_id, template)

        await for_each(templates.values(), release)


async def requeue_claimed(detector: Detector, kind: PolicyKind, policy: Obj, bound: Collection[Ref]) -> None:
    """Requeue the templates that a policy has bindings of, and those that it has claimed and that have no binding.

    They may be all there are: others get their turn in between, and after a start they are checked with their bindings.
    """
    policy_id, kinds, lazily, turn = kind.id_of(policy), detector.kinds, is_lazy(policy), TimeSlice()
    for ref in bound:
        detector.enqueue(ref, lazily=lazily, priority=Priority.REPLAY)
        if turn.is_over():
            await turn.next()
    for gvk in {gvk_of(selector) for selector in selectors_of(policy)}:
        for template in kinds.known_of(gvk, policy_id):
            ref = Ref(gvk, *meta.key(template))
            if ref not in bound:
                detector.enqueue(ref, lazily=lazily, priority=Priority.REPLAY)
            if turn.is_over():
                await turn.next()


async def requeue_waiting(detector: Detector, kind: PolicyKind, policy: Obj) -> None:
    """Requeue the templates that waited for such a policy. One that comes to wait meanwhile is matched with it.

    Each selector is compared with its own candidates, each pair once.
    """
    selectors, waiting = detector.policies.selectors.of(policy), detector.waiting
    pairs = ((selector, ref) for selector in selectors for ref in waiting.candidates([selector.source]))
    async for selector, ref in in_slices(pairs):
        template = detector.kinds.known(ref)
        if template is not None and selector.priority(template) > MISMATCH:
            detector.policies.require_overrides(kind, policy)
            waiting.discard(ref)
            detector.enqueue(ref, lazily=is_lazy(policy), priority=Priority.BACKLOG)

"""The detector: finds the policy of each template, claims the template for it and writes the binding.

A claimed template keeps its policy until the policy is deleted, no longer selects it or is preempted; only unclaimed
templates are matched. One that no policy selects is added to the waiting templates, which every new policy checks:
matching and adding happen without an await in between, so no policy is missed.

A claim is a write to the template, and its watch event arrives like that of any other change, perhaps much later.
Templates are read from informers that have own writes, so that an older state is not mistaken for an unclaimed one.

With a lazy policy, changes by the control plane itself only claim a template; its binding is written at the next change
by a user. The key in the queue carries which of the two it is.

Templates that a new policy selects are a backlog: users' changes go first. Claimed ones that are listed, or whose
policy is listed or changes, are replayed with their bindings. At the start, a template without a policy counts as a
change: it may have been made while no detector ran.

Where policies and the API server are in one process, a template that a policy selects is created as claimed, without a
write of its own (`Claiming`). Everything else is claimed by a patch: templates that exist before their policy, policies
whose dependent overrides are missing, kinds that are not listed yet. A policy that changes finds the templates that
informers have. One that changes while a template is being created does not find it: when the template's event comes,
its claim is compared with the policies as they are then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from karmada.api import well_known
from karmada.api.matching import MISMATCH
from karmada.controllers.context import CONTROLLER_MANAGER, GROUPED, Context
from karmada.controllers.detector.bindings import BindingWriter, WantedBinding
from karmada.controllers.detector.claims import Claim, PolicyKind, claim_of, claiming_changes, claiming_patch
from karmada.controllers.detector.interpretation import Interpretation, ReplicaInterpreter
from karmada.controllers.detector.kinds import Kind, Kinds, SkippedNamespaces
from karmada.controllers.detector.policies import NotYet, Policies, Waiting, is_lazy, read, selectors_of
from karmada.controllers.detector.release import Release
from karmada.controllers.detector.replica_policies import KINDS as REPLICA_POLICIES
from karmada.controllers.detector.replica_policies import ReplicaPolicies, decides, precision
from karmada.controllers.reinterpretation import Concerns, reinterpretation
from karmada.controllers.templates import Ref, changed, changed_by_user, kind_queued, ref_of, unqueued
from karmada.kube.objects import meta
from karmada.kube.objects.errors import Conflict
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import ControllerOptions, Done, Enqueue, Reconciler, Result, Watch
from karmada.kube.runtime.event_filter import SPEC_OR_DELETION
from karmada.kube.runtime.events import NORMAL, WARNING
from karmada.kube.runtime.follow_ups import FollowUp
from karmada.kube.runtime.handled import Generation, Handled, generation_of
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.quarantine import QUARANTINE
from karmada.kube.runtime.queue import Priority
from karmada.kube.runtime.sharing import by_namespace
from karmada.kube.runtime.time_slice import in_slices


class Claiming:
    """Follows up on new templates of the kinds that the detector watches."""

    def __init__(self, policies: Policies, namespaces: SkippedNamespaces) -> None:
        self._policies = policies
        self._namespaces = namespaces
        self._claimed: Handled[str, int] = Handled()
        """Number of policy changes when a template was claimed, by its uid, until its event has come."""
        self._outdated: set[Ref] = set()

    def follow_up(self, template: Obj) -> FollowUp | None:
        if not self._policies.synced or self._namespaces.skips(gvk_of(template), *meta.key(template)):
            return None
        if meta.labels(template).get(well_known.CLAIMED_BY) or claim_of(template) is not None:
            return None
        found = self._policies.choose(template)
        if found is None or not self._policies.has_overrides(*found):
            return None
        changes = claiming_changes(template, *found)
        if changes is None:
            return None
        self._claimed.done(meta.uid(template), self._policies.changes)
        return FollowUp(CONTROLLER_MANAGER, changes)

    def abandoned(self, template: Obj) -> None:
        self._claimed.forget(meta.uid(template))

    def arrived(self, ref: Ref, template: Obj) -> None:
        """Record that the event of a new template has come: from now on a changed policy finds it."""
        changes = self._claimed.take(meta.uid(template))
        if changes is not None and changes != self._policies.changes:
            self._outdated.add(ref)

    def is_outdated(self, ref: Ref, claim: Claim, template: Obj) -> bool:
        """Return whether a policy changed between create and event of a template so that another is to have it."""
        if ref not in self._outdated:
            return False
        self._outdated.discard(ref)
        found = self._policies.choose(template)
        return found is None or Claim(found[0], key_of(found[1])) != claim


DETECTOR: Final = "resource-detector"


_Source: TypeAlias = tuple[str, Generation, Generation | None]
"""What a binding was built from: the version of the template as claimed, and the policies."""


def _source(template: Obj, policy: Obj, replica_policy: Obj | None) -> _Source:
    replicas = None if replica_policy is None else generation_of(replica_policy)
    return meta.resource_version(template), generation_of(policy), replicas


class Detector(Reconciler):
    """The reconciler of templates. Its parts are shared with the reconcilers of policies."""

    name = DETECTOR
    options = ControllerOptions(lane_of=kind_queued, shard_of=by_namespace)

    def __init__(self, context: Context, interpreter: ReplicaInterpreter) -> None:
        self.workers = max(GROUPED, context.settings.concurrent_resource_template_syncs)
        self.recorder = context.recorder(DETECTOR)
        self._namespaces = SkippedNamespaces(context.settings.skipped_propagating_namespaces)
        self.policies = Policies(context)
        self._claiming = Claiming(self.policies, self._namespaces)
        self.kinds = Kinds(context, self, self._claiming)
        self.replica_policies = ReplicaPolicies(context)
        self.waiting = Waiting()
        self.bindings = BindingWriter(context)
        self.release = Release(context, self.kinds, self.bindings)
        self._client = context.client
        self._interpretation = Interpretation(context.client, context.gates, interpreter, self.recorder)
        self.watches: tuple[Watch, ...] = (
            *(
                Watch(kind, changed=SPEC_OR_DELETION, walk=self._requeue_divided, priority=Priority.BACKLOG)
                for kind in REPLICA_POLICIES
            ),
            *reinterpretation(self._requeue_kinds),
        )
        """The templates themselves are watched by `kinds`."""
        self._built: Handled[Ref, _Source] = Handled()
        """Bindings, until the event of the template's claim is reconciled, which then has nothing to do."""
        self._add: Callable[[Key, int], None] | None = None
        self._held = QUARANTINE.of(DETECTOR)

    # from changes to keys

    async def _requeue_kinds(self, concerns: Concerns, add: Enqueue) -> None:
        for kind in self.kinds.all():
            if concerns(kind.gvk):
                async for key in in_slices(kind.informer.keys()):
                    add(Ref(kind.gvk, *key).queued(lazily=False))

    def attach(self, add: Callable[[Key, int], None]) -> None:
        self._add = add

    def existing(self) -> Iterator[Key]:
        for kind in self.kinds.all():
            for key in kind.informer.keys():  # noqa: SIM118 - no dict: it gives objects
                ref = Ref(kind.gvk, *key)
                if not self._namespaces.skips(*ref):
                    yield ref.queued(lazily=False)

    def about(self, key: Key) -> Obj | None:
        return self.kinds.known(unqueued(key)[0])

    def enqueue(self, ref: Ref, *, lazily: bool = False, priority: int = Priority.NEW) -> None:
        if self._add is not None:
            self._add(ref.queued(lazily=lazily), priority)

    def template_changed(self, kind: Kind, old: Obj | None, new: Obj | None, *, initially: bool) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        ref = Ref(kind.gvk, *meta.key(obj))
        if self._namespaces.skips(*ref):
            return
        if old is None and new is not None:
            self._claiming.arrived(ref, new)
        if self._held.entries and (new is None or (old is not None and changed(old, new))):
            self._held.changed(str(ref.queued(lazily=False)), str(ref.queued(lazily=True)))
        if old is None or new is None:
            self.enqueue(ref, priority=Priority.REPLAY if initially and claim_of(obj) is not None else Priority.NEW)
        elif changed(old, new):
            self.enqueue(ref, lazily=self._is_lazy(new) and not changed_by_user(old, new))

    def _is_lazy(self, template: Obj) -> bool:
        claim = claim_of(template)
        return claim is not None and self.policies.claims_lazily(*claim)

    async def _requeue_divided(self, old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        """Enqueue the claimed templates whose replicas a ReplicaSchedulingPolicy decided on or may decide on."""
        for policy in (old, new):
            if policy is None or not decides(policy):
                continue
            selectors = read(policy)
            for gvk in {gvk_of(selector) for selector in selectors_of(policy)} or self.kinds.followed:
                if self._interpretation.divides(gvk):
                    async for template in self.kinds.scan(gvk, meta.namespace(policy)):
                        if claim_of(template) is not None and precision(policy, template, selectors) > MISMATCH:
                            add(ref_of(template).queued(lazily=self._is_lazy(template)))

    def kind_removed(self, kind: Kind) -> None:
        self.waiting.drop(kind.gvk)

    # reconcile

    async def reconcile(self, key: Key) -> Result:
        ref, lazily = unqueued(key)
        template = await self.kinds.find(ref)
        source = self._built.take(ref)
        if template is None or meta.labels(template).get(well_known.CLAIMED_BY):
            self.waiting.discard(ref)
            return Done
        claim = claim_of(template)
        if claim is None:
            await self._match(ref, template, lazily=lazily)
        elif self._claiming.is_outdated(ref, claim, template):
            await self.release.template(claim.kind, meta.labels(template)[claim.kind.id_label], template)
        else:
            await self._keep(ref, template, claim, source, lazily=lazily)
        return Done

    async def _match(self, ref: Ref, template: Obj, *, lazily: bool) -> None:
        """Match an unclaimed template. Nothing is awaited between the search and `waiting.add`."""
        found = self.policies.choose(template)
        if found is None:
            self.waiting.add(ref)
            return
        self.policies.require_overrides(*found)
        self.waiting.discard(ref)
        await self._apply(ref, template, *found, lazily=lazily)

    async def _keep(self, ref: Ref, template: Obj, claim: Claim, source: _Source | None, *, lazily: bool) -> None:
        """Reconcile a claimed template with its policy."""
        kind, key = claim
        policy = self.policies.get(kind, key) or await self.policies.live(kind, key)
        if policy is None:
            await self.release.template(kind, meta.labels(template)[kind.id_label], template)
            return
        if meta.is_deleting(policy):
            raise NotYet(f"{kind.title(policy)} is being deleted")
        if source == _source(template, policy, self.replica_policies.of(template)):
            return
        if not self.policies.selects(policy, template):
            return
        self.policies.require_overrides(kind, policy)
        self.waiting.discard(ref)
        await self._apply(ref, template, kind, policy, lazily=lazily)

    async def _apply(self, ref: Ref, template: Obj, kind: PolicyKind, policy: Obj, *, lazily: bool) -> None:
        try:
            claimed = await self.claim(template, kind, policy)
            if claimed is not None:
                await self.kinds.wrote(ref, claimed)
            if lazily and is_lazy(policy):
                return
            whole = claimed or await self.kinds.whole(ref)
            if whole is None:
                return
            replica_policy = self.replica_policies.of(whole)
            outcome = await self._bind(whole, kind, policy, replica_policy)
        except Conflict:
            raise  # a lost race is no event: it is tried again
        except Exception as error:
            self.recorder.event(template, WARNING, "ApplyPolicyFailed", f"Apply {kind.title(policy)} failed: {error}")
            raise
        if claimed is not None:
            self._built.done(ref, _source(claimed, policy, replica_policy))
        if outcome != "unchanged":
            self.recorder.event(whole, NORMAL, "ApplyPolicySucceed", f"Apply {kind.title(policy)} succeed")

    async def claim(self, template: Obj, kind: PolicyKind, policy: Obj) -> Obj | None:
        """Claim the template for the policy; returns the whole template as written, None if it was claimed already."""
        patch = claiming_patch(template, kind, policy)
        if patch is None:
            return None
        ref = ref_of(template)
        return await self._client.patch(await self.kinds.resource(ref), ref.name, ref.namespace, patch)

    async def _bind(self, template: Obj, kind: PolicyKind, policy: Obj, replica_policy: Obj | None) -> str:
        spec, event = await self._interpretation.of(template, policy, replica_policy)

        def emit() -> None:
            if event is not None:
                self.recorder.event(template, NORMAL, *event)

        return await self.bindings.write(WantedBinding(template, kind, policy, spec), emit)

"""Claims at creation: a template that a policy selects is created as claimed, without a write of its own.

Where policies and the API server are in one process. Everything else is left to the detector, which claims by a patch:
templates that exist before their policy, policies whose dependent overrides are missing, kinds that are not listed yet.

A policy that changes finds the templates that informers have. One that changes while a template is being created does
not find it: when the template's event comes, its claim is compared with the policies as they are then.
"""

from __future__ import annotations

from karmada.api import well_known
from karmada.controllers.context import CONTROLLER_MANAGER
from karmada.controllers.detector.claims import Claim, claim_of, claiming_changes
from karmada.controllers.detector.eligible import SkippedNamespaces
from karmada.controllers.detector.policies import Policies
from karmada.controllers.template_refs import Ref
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.follow_ups import FollowUp
from karmada.kube.runtime.handled import Handled
from karmada.kube.runtime.keys import key_of


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

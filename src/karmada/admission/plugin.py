"""The rules inside the embedded server: no webhook, no bytes, and refusals that read as if there were one.

Which kinds and operations the first two plug-ins concern is known beforehand, so that a write of any other
kind never reaches them; for a deletion one label is checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from karmada.admission.context import CREATE, UPDATE, Context, Refusal, Settings
from karmada.admission.deletion_protection import REFUSAL, is_protected
from karmada.admission.hooks import Hook, run_mutating, run_validating
from karmada.admission.not_acted_on import warning_of
from karmada.admission.table import MUTATING, PROTECTION, VALIDATING
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.admission.interface import DELETE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin

if TYPE_CHECKING:
    from karmada.kube.server.admission.interface import Plugin

WEBHOOK_GROUP = "admissionregistration.k8s.io"
"""Objects of this group are never protected, so that administrators are not locked out."""


def admission_plugins(settings: Settings) -> list[Plugin]:
    """Return what a server's admission chain gets added."""
    return [KarmadaDefaults(settings), KarmadaRules(settings), DeletionProtection(), WarnNotActedOn(settings)]


def by_resource(hooks: Iterable[Hook]) -> dict[tuple[GroupResource, str], Hook]:
    return {(hook.resource, operation): hook for hook in hooks if not hook.label for operation in hook.operations}


class _HookPlugin(BuiltinPlugin):
    hooks: dict[tuple[GroupResource, str], Hook]

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def handles(self, attributes: Attributes) -> bool:
        return not attributes.subresource and (attributes.group_resource, attributes.operation) in self.hooks

    def _found(self, attributes: Attributes) -> tuple[Hook, Context]:
        """Return the hook of a write that `handles`, and its context."""
        context = Context(
            self.settings, attributes.operation, attributes.namespace, attributes.dry_run, attributes.warnings
        )
        return self.hooks[attributes.group_resource, attributes.operation], context


class KarmadaDefaults(_HookPlugin):
    name = "KarmadaDefaults"
    hooks = by_resource(MUTATING)

    async def admit(self, attributes: Attributes) -> None:
        hook, context = self._found(attributes)
        assert attributes.obj is not None
        try:
            run_mutating(hook, attributes.obj, attributes.old, context)
        except Refusal as refusal:
            raise denied(hook, refusal) from refusal


class KarmadaRules(_HookPlugin):
    name = "KarmadaRules"
    mutates = False
    hooks = by_resource(VALIDATING)

    async def validate(self, attributes: Attributes) -> None:
        hook, context = self._found(attributes)
        assert attributes.obj is not None
        try:
            await run_validating(hook, attributes.obj, attributes.old, context)
        except Refusal as refusal:
            raise denied(hook, refusal) from refusal


class DeletionProtection(BuiltinPlugin):
    name = "DeletionProtection"
    mutates = False

    def __init__(self) -> None:
        """Return the context of a hook that reads nothing but the object."""

    def handles(self, attributes: Attributes) -> bool:
        protectable = attributes.resource.gvk.group != WEBHOOK_GROUP
        return attributes.operation == DELETE and not attributes.subresource and protectable

    async def validate(self, attributes: Attributes) -> None:
        if attributes.old is not None and is_protected(attributes.old):
            raise denied(PROTECTION, Refusal(REFUSAL))


class WarnNotActedOn(BuiltinPlugin):
    name = "WarnNotActedOn"
    mutates = False

    def __init__(self, settings: Settings) -> None:
        """Return the context of a hook that reads nothing but the request."""
        self._settings = settings

    def handles(self, attributes: Attributes) -> bool:
        written = attributes.operation in (CREATE, UPDATE) and not attributes.subresource
        return written and bool(warning_of(attributes.group_resource, self._settings))

    async def validate(self, attributes: Attributes) -> None:
        attributes.warnings.append(warning_of(attributes.group_resource, self._settings))


def denied(hook: Hook, refusal: Refusal) -> ApiError:
    """Return the error that a webhook's refusal becomes."""
    from karmada.kube.server.admission.review import denial

    return denial(hook.name, refusal.status())

"""Which objects are reconciled again when what users declare about kinds changes: those of the kinds concerned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from karmada.api.config import ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration
from karmada.controllers.template_refs import ref_of_binding
from karmada.interpreter.lua.rules import target_of
from karmada.interpreter.webhook.hooks import concerned_by
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Watch
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import Key, key_of
from karmada.kube.runtime.predicates import field_changed, spec_changed

Concerns: TypeAlias = Callable[[GVK], bool]
_BACKLOG = -100


def reinterpretation(keys: Callable[[Concerns], Iterable[Key]]) -> tuple[Watch, ...]:
    """Watches that reconcile the keys of objects of the kinds that a change concerns."""

    def of_customization(customization: Obj) -> Iterable[Key]:
        return keys(partial(GVK.__eq__, target_of(customization)))

    def of_webhooks(configuration: Obj) -> Iterable[Key]:
        return keys(concerned_by(configuration))

    webhooks = ResourceInterpreterWebhookConfiguration.gvr
    return (
        Watch(ResourceInterpreterCustomization.gvr, when=spec_changed, map_to=of_customization, priority=_BACKLOG),
        Watch(webhooks, when=field_changed("webhooks"), map_to=of_webhooks, priority=_BACKLOG),
    )


def bindings_of(bindings: Informer, concerns: Concerns) -> Iterable[Key]:
    return [key_of(binding) for binding in bindings.list() if concerns(ref_of_binding(binding).gvk)]

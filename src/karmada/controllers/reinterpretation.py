"""Which objects are reconciled again when what users declare about kinds changes: those of the kinds concerned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from karmada.api.config import ResourceInterpreterCustomization, ResourceInterpreterWebhookConfiguration
from karmada.controllers.templates import ref_of_binding
from karmada.interpreter.lua.rules import target_of
from karmada.interpreter.webhook.hooks import concerned_by
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Enqueue, Walk, Watch
from karmada.kube.runtime.informer import Informer
from karmada.kube.runtime.keys import key_of
from karmada.kube.runtime.queue import Priority

Concerns: TypeAlias = Callable[[GVK], bool]
Requeue: TypeAlias = Callable[[Concerns, Enqueue], Awaitable[None]]
"""Enqueues the keys of all objects of the kinds concerned."""


def reinterpretation(requeue: Requeue) -> tuple[Watch, ...]:
    """Return watches that reconcile the objects of the kinds that a change concerns."""
    webhooks = ResourceInterpreterWebhookConfiguration.gvr
    return (
        Watch(
            ResourceInterpreterCustomization.gvr,
            changed=("spec",),
            walk=_walk(_customized, requeue),
            priority=Priority.BACKLOG,
        ),
        Watch(webhooks, changed=("webhooks",), walk=_walk(concerned_by, requeue), priority=Priority.BACKLOG),
    )


def _customized(customization: Obj) -> Concerns:
    return target_of(customization).__eq__


def _walk(concerns_of: Callable[[Obj], Concerns], requeue: Requeue) -> Walk:
    async def walk(old: Obj | None, new: Obj | None, add: Enqueue) -> None:
        concerned = [concerns_of(obj) for obj in (old, new) if obj is not None]
        await requeue(lambda gvk: any(concerns(gvk) for concerns in concerned), add)

    return walk


async def requeue_bindings(bindings: Informer, concerns: Concerns, add: Enqueue) -> None:
    async for binding in bindings.scan():
        if concerns(ref_of_binding(binding).gvk):
            add(key_of(binding))

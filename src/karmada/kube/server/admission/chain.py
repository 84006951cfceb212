"""The plug-ins in their order, and for every sort of request the few that handle it.

Order is Kubernetes' own and matters: defaults come before the webhooks that see them, the quota comes last, when
nothing can refuse the write any more but the store. A plug-in whose `handles` depends on nothing but resource,
subresource and operation says so (`static`), and it is called once for each of those; that of the others (webhooks,
policies) is called once for each write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.default_ingress_class import DefaultIngressClass
from karmada.kube.server.admission.default_toleration_seconds import DefaultTolerationSeconds
from karmada.kube.server.admission.interface import Attributes, Plugin
from karmada.kube.server.admission.limit_ranger import LimitRanger
from karmada.kube.server.admission.namespace_lifecycle import NamespaceLifecycle
from karmada.kube.server.admission.plugin import BuiltinPlugin
from karmada.kube.server.admission.pod_security.plugin import PodSecurity
from karmada.kube.server.admission.pod_security.policy import Configuration
from karmada.kube.server.admission.priority import Priority
from karmada.kube.server.admission.resource_quota import RecordUsage, ResourceQuota
from karmada.kube.server.admission.runtime_class import RuntimeClass
from karmada.kube.server.admission.service_account import ServiceAccount
from karmada.kube.server.admission.storage import (
    DefaultStorageClass,
    PersistentVolumeClaimResize,
    StorageObjectInUseProtection,
)
from karmada.kube.server.admission.taint_nodes import TaintNodesByCondition
from karmada.kube.server.auth.csr_admission import CertificateGuard
from karmada.kube.server.auth.escalation import EscalationGuard
from karmada.kube.server.auth.rbac import Authorizer

ORDER = (
    "NamespaceLifecycle",
    "LimitRanger",
    "ServiceAccount",
    "TaintNodesByCondition",
    "PodSecurity",
    "Priority",
    "DefaultTolerationSeconds",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateSigningRequests",
    "RBACEscalation",
    "DefaultIngressClass",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
)
_BUILTIN: tuple[type[BuiltinPlugin], ...] = (
    NamespaceLifecycle,
    LimitRanger,
    TaintNodesByCondition,
    Priority,
    DefaultTolerationSeconds,
    DefaultStorageClass,
    StorageObjectInUseProtection,
    PersistentVolumeClaimResize,
    RuntimeClass,
    DefaultIngressClass,
)

_Key = tuple[GroupResource, str, str]


class _Steps(NamedTuple):
    """The plug-ins that handle a write."""

    plugins: tuple[Plugin, ...]
    admit: tuple[Plugin, ...]
    validate: tuple[Plugin, ...]
    finish: tuple[Plugin, ...]
    may_wait: bool
    """True if one of them is not `static`: those may call other servers."""


class Chain:
    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins: list[Plugin] = []
        self._dynamic: list[Plugin] = []
        self._static: dict[_Key, _Steps] = {}
        """The plug-ins that handle such a write when no other does."""
        for plugin in plugins:
            self.add(plugin)

    @property
    def names(self) -> list[str]:
        return [plugin.name for plugin in self._plugins]

    def add(self, plugin: Plugin) -> None:
        """Put a plug-in at its place in the order; one without a place comes right before the quota."""
        rank = _rank(plugin.name)
        at = next((i for i, other in enumerate(self._plugins) if _rank(other.name) > rank), len(self._plugins))
        self._plugins.insert(at, plugin)
        if not plugin.static:
            self._dynamic.append(plugin)
        self._static.clear()

    async def admit(self, attributes: Attributes) -> bool:
        """Call every `admit`, in order, and again on reinvocation; return whether one may have changed the object."""
        plugins, changed = self._for(attributes).admit, False
        for plugin in plugins:
            await plugin.admit(attributes)
            changed = changed or plugin.mutates
        if attributes.begin_second_round():
            for plugin in plugins:
                await plugin.admit(attributes)
        return changed

    async def validate(self, attributes: Attributes) -> None:
        for plugin in self._for(attributes).validate:
            await plugin.validate(attributes)

    def finish(self, attributes: Attributes, stored: bool | None) -> None:
        """Report the end of an admitted write: it was stored, was not, or (None) the outcome is unknown."""
        for plugin in self._for(attributes).finish:
            plugin.finish(attributes, stored)

    def may_wait(self, attributes: Attributes) -> bool:
        """Return whether such a write is handled by a plug-in that may call another server."""
        return self._for(attributes).may_wait

    def decides_by_namespace(self, attributes: Attributes) -> bool:
        """Return whether such a create is admitted as it is, or refused, by nothing but its namespace."""
        steps = self._for(attributes)
        return not steps.finish and all(plugin.by_namespace for plugin in (*steps.admit, *steps.validate))

    def _for(self, attributes: Attributes) -> _Steps:
        """Return what handles this write; it is found once and kept with the write."""
        steps: _Steps | None = attributes.steps
        if steps is None:
            steps = attributes.steps = self._steps_of(attributes)
        return steps

    def _steps_of(self, attributes: Attributes) -> _Steps:
        key = (attributes.resource.group_resource, attributes.subresource, attributes.operation)
        static = self._static.get(key)
        if static is None:
            handling = (plugin for plugin in self._plugins if plugin.static and plugin.handles(attributes))
            static = self._static[key] = _steps(tuple(handling))
        dynamic = [plugin for plugin in self._dynamic if plugin.handles(attributes)]
        if not dynamic:
            return static
        return _steps(tuple(plugin for plugin in self._plugins if plugin in static.plugins or plugin in dynamic))


def _steps(plugins: tuple[Plugin, ...]) -> _Steps:
    return _Steps(
        plugins,
        tuple(plugin for plugin in plugins if type(plugin).admit is not Plugin.admit),
        tuple(plugin for plugin in plugins if type(plugin).validate is not Plugin.validate),
        tuple(plugin for plugin in plugins if type(plugin).finish is not Plugin.finish),
        not all(plugin.static for plugin in plugins),
    )


def _rank(name: str) -> float:
    return ORDER.index(name) if name in ORDER else ORDER.index("ResourceQuota") - 0.5


def default_plugins(
    reader: Reader,
    *,
    clock: Clock | None = None,
    disabled: Iterable[str] = (),
    configuration: Mapping[str, Obj] | None = None,
    record_usage: RecordUsage | None = None,
) -> list[Plugin]:
    """Return the plug-ins that need only current state and their configuration, without disabled ones."""
    plugins: list[Plugin] = [plugin(reader) for plugin in _BUILTIN]
    plugins.append(PodSecurity(reader, Configuration.of((configuration or {}).get(PodSecurity.name))))
    plugins.append(ServiceAccount(reader, clock or RealClock()))
    plugins.append(ResourceQuota(reader, clock or RealClock(), record_usage))
    off = frozenset(disabled)
    return [plugin for plugin in plugins if plugin.name not in off]


def default_chain(
    reader: Reader,
    authorizer: Authorizer | None = None,
    *,
    disabled: Iterable[str] = (),
    clock: Clock | None = None,
    others: Iterable[Plugin] = (),
    configuration: Mapping[str, Obj] | None = None,
    record_usage: RecordUsage | None = None,
) -> Chain:
    """Return the chain of a server; `others` (webhooks, policies) go to the places that their names have in the order.

    `record_usage` updates the status of a quota with what a request adds to it.
    """
    off = frozenset(disabled)
    chain = Chain(
        default_plugins(reader, clock=clock, disabled=off, configuration=configuration, record_usage=record_usage)
    )
    more: list[Plugin] = list(others)
    if authorizer is not None:
        more += [CertificateGuard(authorizer), EscalationGuard(authorizer)]
    for plugin in more:
        if plugin.name not in off:
            chain.add(plugin)
    return chain

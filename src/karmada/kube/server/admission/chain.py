"""The plug-ins in their order, and for every sort of request the few that handle it.

Order is Kubernetes' own and matters: defaults come before the webhooks that see them, the quota comes last, when
nothing can refuse the write any more but the store. Which plug-ins handle a sort of write (resource, subresource,
operation, with or without a namespace) is found once, and again when something that one of them `depends_on` has
changed: webhook configurations, policies, the kinds that are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.clock import Clock, RealClock
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.default_ingress_class import DefaultIngressClass
from karmada.kube.server.admission.default_toleration_seconds import DefaultTolerationSeconds
from karmada.kube.server.admission.interface import Attributes, Generation, Plugin
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

_Key = tuple[GVK, str, str, str, bool]


class _Steps(NamedTuple):
    """The plug-ins that handle a write, and among them those that have such a step."""

    plugins: tuple[Plugin, ...]
    admit: tuple[Plugin, ...]
    validate: tuple[Plugin, ...]
    finish: tuple[Plugin, ...]

    @classmethod
    def of(cls, plugins: tuple[Plugin, ...]) -> _Steps:
        return cls(
            plugins,
            tuple(plugin for plugin in plugins if type(plugin).admit is not Plugin.admit),
            tuple(plugin for plugin in plugins if type(plugin).validate is not Plugin.validate),
            tuple(plugin for plugin in plugins if type(plugin).finish is not Plugin.finish),
        )


class Chain:
    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self._plugins: list[Plugin] = []
        self._sources: list[Generation] = []
        self._seen: list[int] = []
        """The generations of the sources that the steps were found at."""
        self._steps: dict[_Key, _Steps] = {}
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
        self._sources += plugin.depends_on
        self._steps.clear()

    async def admit(self, attributes: Attributes) -> bool:
        """Call every `admit`, in order, and again on reinvocation; return whether one may have changed the object."""
        plugins, changed = self._of(attributes).admit, False
        for plugin in plugins:
            await plugin.admit(attributes)
            changed = changed or plugin.mutates
        if attributes.rounds is not None and attributes.rounds.begin_second():
            for plugin in plugins:
                await plugin.admit(attributes)
        return changed

    async def validate(self, attributes: Attributes) -> None:
        for plugin in (attributes.steps or self._of(attributes)).validate:
            await plugin.validate(attributes)

    def finish(self, attributes: Attributes, stored: bool | None) -> None:
        """Report the end of an admitted write: it was stored, was not, or (None) the outcome is unknown."""
        for plugin in (attributes.steps or self._of(attributes)).finish:
            plugin.finish(attributes, stored)

    def may_wait(self, attributes: Attributes) -> bool:
        """Return whether such a write is handled by a plug-in that may call another server."""
        return any(plugin.waits for plugin in self._of(attributes).plugins)

    def decides_by_namespace(self, attributes: Attributes) -> bool:
        """Return whether such a create is admitted as it is, or refused, by nothing but its namespace."""
        steps = self._of(attributes)
        return not steps.finish and all(plugin.by_namespace for plugin in (*steps.admit, *steps.validate))

    def _of(self, attributes: Attributes) -> _Steps:
        """Return what handles such a write, which is kept with the write."""
        now = [source.generation for source in self._sources]
        if now != self._seen:
            self._seen = now
            self._steps.clear()
        resource = attributes.resource
        key = (resource.gvk, resource.plural, attributes.subresource, attributes.operation, bool(attributes.namespace))
        steps = self._steps.get(key)
        if steps is None:
            handling = tuple(plugin for plugin in self._plugins if plugin.handles(attributes))
            steps = self._steps[key] = _Steps.of(handling)
        attributes.steps = steps
        return steps


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

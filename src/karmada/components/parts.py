"""Every controller under the name that --controllers has for it, and how it is made.

To add a controller, add a row: its name, what makes it, and when it runs. Rows stand in the order in which controllers
start. What several of them use (the interpreter, the override policies) is made once, when the first of
them needs it, so that a process that runs few controllers watches only what those few need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from karmada.controllers.agent_csr_approving import AgentCsrApproving
from karmada.controllers.binding.controller import Binding
from karmada.controllers.binding.kinds import KINDS
from karmada.controllers.binding_status.controller import BindingStatus
from karmada.controllers.binding_status.template_status import TemplateStatus
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster.monitor import ClusterMonitor
from karmada.controllers.cluster_api import ClusterApi
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.context import Context
from karmada.controllers.dependencies import dependency_parts
from karmada.controllers.detector.parts import detector_parts
from karmada.controllers.execution.controller import Execution
from karmada.controllers.hpa_scale_target_marker import HpaScaleTargetMarker
from karmada.controllers.namespace_sync import NamespaceSync, SyncedNamespaces
from karmada.controllers.replicas_syncer import DeploymentReplicasSyncer
from karmada.controllers.templates import Templates
from karmada.controllers.unified_auth import UnifiedAuth
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.native.layer import Native
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component
from karmada.overrides.engine import Overrides
from karmada.overrides.hook import COMPONENT, Override, override_with
from karmada.overrides.triggers import Triggers

Part: TypeAlias = Reconciler | Component

EVERYTHING = "*"
NOT_BUILT = frozenset(
    {
        "applicationFailover",
        "clustertaintpolicy",
        "cronFederatedHorizontalPodAutoscaler",
        "endpointSlice",
        "endpointsliceCollect",
        "endpointsliceDispatch",
        "federatedHorizontalPodAutoscaler",
        "federatedResourceQuotaEnforcement",
        "federatedResourceQuotaStatus",
        "federatedResourceQuotaSync",
        "gracefulEviction",
        "multiclusterservice",
        "remedy",
        "serviceExport",
        "serviceImport",
        "workloadRebalancer",
    }
)
"""Controllers of Karmada that do not exist here yet; their names are accepted."""
WITH_EXECUTION = "workStatus"
"""Runs as a part of `execution`: one controller applies a Work and reports the status of what it applied."""


class Shared:
    """What several controllers use, made when the first of them needs it."""

    def __init__(
        self, context: Context, *, interpreter: Interpreter | None = None, override: Override | None = None
    ) -> None:
        self.context = context
        self._interpreter = interpreter
        self._override = override

    @cached_property
    def interpreter(self) -> Interpreter:
        return self._interpreter or Interpreter(native=Native(self.context.clock, self.context.gates))

    @cached_property
    def overrides(self) -> Overrides:
        return Overrides(self.context.informers)

    @cached_property
    def override(self) -> Override:
        return self._override or override_with(self.overrides, self.context.recorder(COMPONENT))

    @cached_property
    def templates(self) -> Templates:
        return Templates(self.context)


def _always(_context: Context) -> bool:
    return True


def _nothing(_reference: Obj) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    make: Callable[[Shared], Iterable[Part]]
    by_default: bool = True
    """Whether `*` includes it; otherwise it runs only when --controllers names it."""
    optional: bool = True
    """Whether --controllers can leave it out."""
    when: Callable[[Context], bool] = _always
    """Further conditions: feature gates, other flags."""


def _cluster_api(shared: Shared) -> list[Part]:
    settings = shared.context.settings
    kubeconfig = Path(settings.cluster_api_kubeconfig).expanduser()
    return [ClusterApi(shared.context, kubeconfig, settings.cluster_api_context)]


def _binding(shared: Shared) -> list[Part]:
    context, templates = shared.context, shared.templates
    synced = SyncedNamespaces(context) if is_enabled("namespace", context.settings.controllers) else _nothing
    return [
        Binding(
            context,
            kind,
            shared.interpreter,
            templates,
            Triggers(context.informers, kind.gvr, shared.overrides, templates.light),
            shared.override,
            synced,
        )
        for kind in KINDS
    ]


def _binding_status(shared: Shared) -> list[Part]:
    template_status = TemplateStatus(shared.interpreter, shared.templates)
    return [BindingStatus(shared.context, kind, template_status) for kind in KINDS]


CONTROLLERS: Sequence[Row] = (
    Row("clusterApi", _cluster_api, optional=False, when=lambda context: bool(context.settings.cluster_api_kubeconfig)),
    Row("cluster", lambda shared: [Clusters(shared.context), ClusterMonitor(shared.context)]),
    Row("clusterStatus", lambda shared: [ClusterStatus(shared.context)]),
    Row("agentcsrapproving", lambda shared: [AgentCsrApproving(shared.context)]),
    Row("unifiedAuth", lambda shared: [UnifiedAuth(shared.context)]),
    Row("namespace", lambda shared: [NamespaceSync(shared.context, shared.override)]),
    Row("detector", lambda shared: detector_parts(shared.context, shared.interpreter), optional=False),
    Row("dependencies", lambda shared: dependency_parts(shared.context, shared.interpreter), optional=False),
    Row("binding", _binding),
    Row("execution", lambda shared: [Execution(shared.context, shared.interpreter)]),
    Row("bindingStatus", _binding_status),
    Row("hpaScaleTargetMarker", lambda shared: [HpaScaleTargetMarker(shared.context)], by_default=False),
    Row("deploymentReplicasSyncer", lambda shared: [DeploymentReplicasSyncer(shared.context)], by_default=False),
)
PROPAGATION = ("binding", "execution", "bindingStatus")
"""From bindings with clusters to members, and their status back."""


def names() -> list[str]:
    """What --controllers may name, in alphabetical order."""
    built = {row.name for row in CONTROLLERS if row.optional}
    return sorted({*built, WITH_EXECUTION, *NOT_BUILT}, key=str.lower)


def is_enabled(name: str, flag: Sequence[str], *, by_default: bool = True) -> bool:
    """Whether --controllers enables a controller: the first entry that names it decides, else `*`."""
    for entry in flag:
        if entry == name:
            return True
        if entry == f"-{name}":
            return False
    return by_default and EVERYTHING in flag


def check(flag: Sequence[str]) -> None:
    """ValueError for an unknown entry of --controllers."""
    known = {EVERYTHING, *names()}
    for entry in flag:
        if entry.removeprefix("-") not in known:
            raise ValueError(f'--controllers: "{entry}" is not in the list of known controllers: {", ".join(names())}')
    if is_enabled("execution", flag) != is_enabled(WITH_EXECUTION, flag):
        raise ValueError("--controllers: execution and workStatus run as one; enable both or disable both")


def parts_named(shared: Shared, *wanted: str) -> list[Part]:
    """The parts of these controllers, whatever the flags say."""
    return [part for row in CONTROLLERS if row.name in wanted for part in row.make(shared)]


def all_parts(shared: Shared) -> list[Part]:
    """The parts of every controller that flags and gates enable."""
    context = shared.context
    flag = context.settings.controllers

    def runs(row: Row) -> bool:
        named = not row.optional or is_enabled(row.name, flag, by_default=row.by_default)
        return named and row.when(context)

    return [part for row in CONTROLLERS if runs(row) for part in row.make(shared)]

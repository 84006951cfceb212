"""Every controller under the name that --controllers has for it, and how it is made.

To add a controller, add a row: its name, what makes it, and when it runs. Rows stand in the order in which controllers
start. What several of them use (the interpreter, the override policies) is made once, when the first of
them needs it, so that a process that runs few controllers watches only what those few need.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karmada.components import rows
from karmada.components.rows import Part, Row, Shared, is_enabled
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
from karmada.controllers.cron_federated_hpa.controller import CronFederatedHPAs
from karmada.controllers.dependencies import dependency_parts
from karmada.controllers.detector.parts import detector_parts
from karmada.controllers.execution.controller import Execution
from karmada.controllers.failover.application import ApplicationFailover
from karmada.controllers.failover.graceful_eviction import GracefulEviction
from karmada.controllers.failover.metrics import EvictionMetrics
from karmada.controllers.failover.remedies import Remedies
from karmada.controllers.failover.taint_manager import TaintManager
from karmada.controllers.failover.taint_policies import ClusterTaintPolicies
from karmada.controllers.federated_hpa.controller import FederatedHpas
from karmada.controllers.federated_resource_quota.enforcement import QuotaEnforcement
from karmada.controllers.federated_resource_quota.status import QuotaStatus
from karmada.controllers.federated_resource_quota.sync import QuotaSync
from karmada.controllers.hpa_scale_target_marker import HpaScaleTargetMarker
from karmada.controllers.namespace_sync import NamespaceSync, SyncedNamespaces
from karmada.controllers.networking.endpointslice_collect import EndpointSliceCollect
from karmada.controllers.networking.endpointslice_dispatch import EndpointSliceDispatch
from karmada.controllers.networking.imported_slices import ImportedSlices
from karmada.controllers.networking.load_balancer_status import LoadBalancerStatus
from karmada.controllers.networking.multi_cluster_ingress import MultiClusterIngresses
from karmada.controllers.networking.multi_cluster_service import MultiClusterServices
from karmada.controllers.networking.service_export import ServiceExports
from karmada.controllers.networking.service_import import ServiceImports
from karmada.controllers.replicas_syncer import DeploymentReplicasSyncer
from karmada.controllers.unified_auth import UnifiedAuth
from karmada.controllers.workload_rebalancer import WorkloadRebalancers
from karmada.kube.objects.types import Obj
from karmada.overrides.triggers import Triggers


def _nothing(_reference: Obj) -> bool:
    return False


def _cluster_api(shared: Shared) -> list[Part]:
    settings = shared.context.settings
    kubeconfig = Path(settings.cluster_api_kubeconfig).expanduser()
    return [ClusterApi(shared.context, kubeconfig, settings.cluster_api_context)]


def _binding(shared: Shared) -> list[Part]:
    context, templates = shared.context, shared.context.templates
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
    template_status = TemplateStatus(shared.interpreter, shared.context.templates)
    return [BindingStatus(shared.context, kind, template_status) for kind in KINDS]


def _cluster(shared: Shared) -> list[Part]:
    """Return the cluster controller; the taint manager is part of it by its flags and gate."""
    context, settings = shared.context, shared.context.settings
    parts: list[Part] = [Clusters(context), ClusterMonitor(context)]
    if settings.enable_taint_manager and settings.enable_no_execute_taint_eviction and _fails_over(context):
        metrics = EvictionMetrics()
        parts += [TaintManager(context, kind, metrics) for kind in KINDS]
    return parts


def _fails_over(context: Context) -> bool:
    return context.gates.enabled("Failover")


def _across_clusters(context: Context) -> bool:
    return context.gates.enabled("MultiClusterService")


def _enforces_quotas(context: Context) -> bool:
    return context.gates.enabled("FederatedQuotaEnforcement")


def _application_failover(shared: Shared) -> list[Part]:
    return [ApplicationFailover(shared.context, kind, shared.interpreter) for kind in KINDS]


CONTROLLERS: Sequence[Row] = (
    Row("clusterApi", _cluster_api, optional=False, when=lambda context: bool(context.settings.cluster_api_kubeconfig)),
    Row("cluster", _cluster),
    Row("clusterStatus", lambda shared: [ClusterStatus(shared.context)]),
    Row("agentcsrapproving", lambda shared: [AgentCsrApproving(shared.context)]),
    Row("unifiedAuth", lambda shared: [UnifiedAuth(shared.context)]),
    Row("namespace", lambda shared: [NamespaceSync(shared.context, shared.override)]),
    Row("detector", lambda shared: detector_parts(shared.context, shared.interpreter), optional=False),
    Row("dependencies", lambda shared: dependency_parts(shared.context, shared.interpreter), optional=False),
    Row("binding", _binding),
    Row("execution", lambda shared: [Execution(shared.context, shared.interpreter)]),
    Row("bindingStatus", _binding_status),
    Row("clustertaintpolicy", lambda shared: [ClusterTaintPolicies(shared.context)], when=_fails_over),
    Row("gracefulEviction", lambda shared: [GracefulEviction(shared.context, kind) for kind in KINDS]),
    Row("applicationFailover", _application_failover),
    Row("remedy", lambda shared: [Remedies(shared.context)]),
    Row("workloadRebalancer", lambda shared: [WorkloadRebalancers(shared.context)]),
    Row("cronFederatedHorizontalPodAutoscaler", lambda shared: [CronFederatedHPAs(shared.context)]),
    Row("federatedHorizontalPodAutoscaler", lambda shared: [FederatedHpas(shared.context)]),
    Row("federatedResourceQuotaSync", lambda shared: [QuotaSync(shared.context)]),
    Row("federatedResourceQuotaStatus", lambda shared: [QuotaStatus(shared.context)]),
    Row("federatedResourceQuotaEnforcement", lambda shared: [QuotaEnforcement(shared.context)], when=_enforces_quotas),
    Row("serviceExport", lambda shared: [ServiceExports(shared.context)]),
    Row("endpointSlice", lambda shared: [ImportedSlices(shared.context)]),
    Row("serviceImport", lambda shared: [ServiceImports(shared.context)]),
    Row(
        "multiclusterservice",
        lambda shared: [MultiClusterServices(shared.context), LoadBalancerStatus(shared.context)],
        when=_across_clusters,
    ),
    Row("endpointsliceCollect", lambda shared: [EndpointSliceCollect(shared.context)], when=_across_clusters),
    Row("endpointsliceDispatch", lambda shared: [EndpointSliceDispatch(shared.context)], when=_across_clusters),
    Row("multiclusteringress", lambda shared: [MultiClusterIngresses(shared.context)]),
    Row("hpaScaleTargetMarker", lambda shared: [HpaScaleTargetMarker(shared.context)], by_default=False),
    Row("deploymentReplicasSyncer", lambda shared: [DeploymentReplicasSyncer(shared.context)], by_default=False),
)
PROPAGATION = ("binding", "execution", "bindingStatus")
"""From bindings with clusters to members, and their status back."""


def names() -> list[str]:
    """Return what --controllers may name, in alphabetical order."""
    return rows.names(CONTROLLERS)


def check(flag: Sequence[str]) -> None:
    """ValueError for an unknown entry of --controllers."""
    rows.check(flag, names())


def parts_named(shared: Shared, *wanted: str) -> list[Part]:
    """Return the parts of these controllers, whatever the flags say."""
    return [part for row in CONTROLLERS if row.name in wanted for part in row.make(shared)]


def all_parts(shared: Shared) -> list[Part]:
    """Return the parts of every controller that flags and gates enable."""
    return rows.enabled_parts(CONTROLLERS, shared)

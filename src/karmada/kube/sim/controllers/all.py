"""The controllers of a simulated cluster, except those that need the heartbeats of nodes."""

from __future__ import annotations

from karmada.kube.autoscaling.metrics import MetricsClient, NamedMetrics
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.cronjob import CronJobs
from karmada.kube.sim.controllers.daemonset import DaemonSets
from karmada.kube.sim.controllers.deployment import Deployments
from karmada.kube.sim.controllers.disruption import DisruptionBudgets
from karmada.kube.sim.controllers.endpoints import LegacyEndpoints
from karmada.kube.sim.controllers.endpointslice import EndpointSlices
from karmada.kube.sim.controllers.hpa import HorizontalPodAutoscalers
from karmada.kube.sim.controllers.job import Jobs
from karmada.kube.sim.controllers.loadbalancer import IngressAddresses, LoadBalancers
from karmada.kube.sim.controllers.mirroring import EndpointMirroring
from karmada.kube.sim.controllers.podgc import PodGarbage
from karmada.kube.sim.controllers.quota import ResourceQuotas
from karmada.kube.sim.controllers.replicaset import ReplicaSets, ReplicationControllers
from karmada.kube.sim.controllers.statefulset import StatefulSets
from karmada.kube.sim.controllers.tainteviction import TaintEviction
from karmada.kube.sim.controllers.volumes import volume_controllers


def member_controllers(context: Context) -> list[Reconciler]:
    return [
        Deployments(context),
        ReplicaSets(context),
        ReplicationControllers(context),
        StatefulSets(context),
        DaemonSets(context),
        Jobs(context),
        CronJobs(context),
        EndpointSlices(context),
        LegacyEndpoints(context),
        EndpointMirroring(context),
        LoadBalancers(context),
        IngressAddresses(context),
        *volume_controllers(context),
        ResourceQuotas(context),
        DisruptionBudgets(context),
        PodGarbage(context),
        TaintEviction(context),
        HorizontalPodAutoscalers(context, NamedMetrics(MetricsClient(context.client()))),
    ]

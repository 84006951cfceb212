"""Every controller of the control plane, in the order in which they start."""

from __future__ import annotations

from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster.monitor import ClusterMonitor
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.context import Context
from karmada.controllers.namespace_sync import NamespaceSync
from karmada.controllers.unified_auth import UnifiedAuth
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component


def controllers(context: Context) -> list[Reconciler | Component]:
    return [
        Clusters(context),
        ClusterMonitor(context),
        ClusterStatus(context),
        UnifiedAuth(context),
        NamespaceSync(context),
    ]

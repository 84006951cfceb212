"""Every controller of the control plane, in the order in which they start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster.monitor import ClusterMonitor
from karmada.controllers.cluster_api import ClusterApi
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.context import Context, is_switched_on
from karmada.controllers.dependencies import dependency_parts
from karmada.controllers.detector.parts import detector_parts
from karmada.controllers.hpa_scale_target_marker import HpaScaleTargetMarker
from karmada.controllers.namespace_sync import NamespaceSync
from karmada.controllers.propagation import propagation_parts
from karmada.controllers.replicas_syncer import DeploymentReplicasSyncer
from karmada.controllers.unified_auth import UnifiedAuth
from karmada.interpreter.interpreter import Interpreter
from karmada.interpreter.native.layer import Native
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component
from karmada.overrides.engine import Overrides
from karmada.overrides.hook import COMPONENT, override_with
from karmada.scheduler.service.scheduler import scheduler_parts

OPTIONAL: dict[str, Callable[[Context], Reconciler]] = {
    "hpaScaleTargetMarker": HpaScaleTargetMarker,
    "deploymentReplicasSyncer": DeploymentReplicasSyncer,
}
"""Off unless the flag --controllers names them."""


def controllers(context: Context) -> list[Reconciler | Component]:
    interpreter = Interpreter(native=Native(context.clock, context.gates))
    overrides = Overrides(context.informers)
    override = override_with(overrides, context.recorder(COMPONENT))
    settings = context.settings
    from_cluster_api: list[Reconciler | Component] = []
    if settings.cluster_api_kubeconfig:
        where = Path(settings.cluster_api_kubeconfig).expanduser()
        from_cluster_api.append(ClusterApi(context, where, settings.cluster_api_context))
    return [
        *from_cluster_api,
        Clusters(context),
        ClusterMonitor(context),
        ClusterStatus(context),
        UnifiedAuth(context),
        NamespaceSync(context, override),
        *detector_parts(context, interpreter),
        *dependency_parts(context, interpreter),
        *scheduler_parts(context),
        *propagation_parts(context, interpreter, override, overrides),
        *(
            make(context)
            for name, make in OPTIONAL.items()
            if is_switched_on(name, settings.controllers, by_default=False)
        ),
    ]

"""The controllers of an agent: those of the control plane that work on one cluster, for its own in mode Pull.

They see no other Cluster and no other Works: the assembly of an agent limits what is watched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from karmada.components import rows
from karmada.components.rows import Part, Row, Shared
from karmada.controllers.cluster_state import is_pull
from karmada.controllers.cluster_status.controller import ClusterStatus
from karmada.controllers.cluster_status.heartbeat import Heartbeat
from karmada.controllers.context import Context
from karmada.controllers.execution.controller import Execution
from karmada.controllers.networking.endpointslice_collect import EndpointSliceCollect
from karmada.controllers.networking.service_export import ServiceExports


def agent_rows(
    heartbeat: Callable[[Context], Heartbeat] = Heartbeat, rotation: Callable[[Context], Part] | None = None
) -> Sequence[Row]:
    """`heartbeat` makes the one that keeps the cluster's Lease, `rotation` what renews the certificate."""

    def cluster_status(shared: Shared) -> list[Part]:
        return [ClusterStatus(shared.context, handles=is_pull, heartbeat=heartbeat(shared.context))]

    return (
        Row("clusterStatus", cluster_status),
        Row(
            "execution",
            lambda shared: [Execution(shared.context, shared.interpreter, handles=is_pull, templates=False)],
        ),
        Row("serviceExport", lambda shared: [ServiceExports(shared.context, handles=is_pull)]),
        Row(
            "endpointsliceCollect",
            lambda shared: [EndpointSliceCollect(shared.context, handles=is_pull)],
            when=lambda context: context.gates.enabled("MultiClusterService"),
        ),
        Row("certRotation", lambda shared: [rotation(shared.context)] if rotation else [], by_default=False),
    )


def check(flag: Sequence[str]) -> None:
    """ValueError for an unknown entry of --controllers."""
    rows.check(flag, rows.names(agent_rows()))

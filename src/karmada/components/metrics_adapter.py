"""`karmada-metrics-adapter`: the metrics APIs of all members as one, for a control plane of several processes.

It serves metrics.k8s.io, custom.metrics.k8s.io and external.metrics.k8s.io behind APIServices of the control plane.
The all-in-one `karmada` has it built in and does not need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from karmada.components.extension import Extension, delegation_flags, extension_from, run_extension, serving_flags
from karmada.components.flags import Given, address, ignored, insecure_members_flag, logging_flags, together
from karmada.components.program import CONTEXT, Program
from karmada.components.server_flags import audit_flags

if TYPE_CHECKING:
    from karmada.kube.objects.gvk import GroupVersion
    from karmada.kube.server.config import ServerConfig
    from karmada.metricsadapter.adapter import MetricsAdapter

SERVICE: Final = "karmada-metrics-adapter.karmada-system"

flags = together(
    delegation_flags,
    serving_flags,
    audit_flags,
    insecure_members_flag,
    ignored(
        "--kube-api-qps --kube-api-burst --cluster-api-qps --cluster-api-burst",
        "the rate of requests adapts to the API servers.",
    ),
    address("--metrics-bind-address", ":8080", "Address of /metrics; 0 disables it there, not at --secure-port."),
    ignored("--enable-pprof --profiling-bind-address", "py-spy profiles a running process."),
    logging_flags,
)


@click.command("karmada-metrics-adapter", cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Serve the metrics of all clusters behind the API server of a control plane, until interrupted.

    The control plane sends requests here once it has APIServices for it: docs/components/karmada-metrics-adapter.md.
    """
    run_extension(given, lambda config: adapter_server(config, given), "the metrics of all clusters")


def adapter_server(config: ServerConfig, given: Given) -> Extension:
    from karmada.kube.server.aggregation.metrics_objects import CUSTOM, EXTERNAL, METRICS
    from karmada.metricsadapter.adapter import MetricsAdapter

    made: list[MetricsAdapter] = []

    def inside(extension: Extension) -> tuple[MetricsAdapter, Sequence[GroupVersion]]:
        insecure = given["allow_insecure_members"]
        made.append(MetricsAdapter(extension.control_plane, extension.clock, allow_insecure=insecure))
        return made[0], (METRICS, *CUSTOM, EXTERNAL)

    extension = extension_from(given, config, SERVICE, inside, given["metrics_bind_address"])
    made[0].serve_discovery(extension.server)
    extension.server.closing.append(made[0].clusters.stop)
    return extension


if __name__ == "__main__":
    main()

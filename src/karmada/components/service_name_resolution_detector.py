"""`service-name-resolution-detector-example`: whether the nodes of a member resolve the names of Services.

It runs on every node of a member (as a DaemonSet) and is a client of that member's API server; its leader is one of the
control plane's too, where it has a condition of the Cluster.
"""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import click

from karmada.components.flags import (
    Endpoints,
    duration,
    election_flags,
    election_from,
    logging_flags,
    own_cluster_config,
    refuse,
    together,
)
from karmada.components.process import NOWHERE, Process, run_process
from karmada.components.program import CONTEXT, Program
from karmada.features import default_gates

if TYPE_CHECKING:
    from karmada.components.election import Election
    from karmada.kube.client.config import RestConfig
    from karmada.kube.objects.errors import FieldError
    from karmada.kube.objects.types import Obj
    from karmada.problemdetector.rules import Thresholds

COMPONENT = "service-name-resolution-detector-example"
LEASE = "cluster-problem-detector-coredns-detector"


class DetectorProcess(Process):
    """`member` is the way to the cluster it runs in, `control_plane` None: without the part of the leader."""

    def __init__(
        self,
        member: RestConfig,
        control_plane: RestConfig | None,
        cluster: str,
        node: str,
        *,
        period: float,
        thresholds: Thresholds,
        election: Election | None = None,
        endpoints: Endpoints = NOWHERE,
        pod: Obj | None = None,
    ) -> None:
        from karmada.kube.client.client import Client
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.kube.runtime.events import EventRecorder
        from karmada.problemdetector.name_resolution import ClusterReporter, NodeDetector

        super().__init__(member, COMPONENT, default_gates(), endpoints=endpoints)
        clock = self.manager.clock
        recorder = EventRecorder(self.client, COMPONENT, clock=clock)
        self.manager.add_component(recorder)
        self.manager.add_component(
            NodeDetector(self.client, node, recorder, clock, period=period, thresholds=thresholds, pod=pod)
        )
        self.control_plane: Client | None = None
        if control_plane is not None:
            self.control_plane = Client(HttpTransport(control_plane), field_manager=COMPONENT)
            reporter = ClusterReporter(
                self.client, self.control_plane, cluster, clock, period=period, stale=thresholds.stale
            )
            self.assembly.add([reporter], election)

    async def _work(self) -> None:
        try:
            await super()._work()
        finally:
            if self.control_plane is not None:
                await self.control_plane.close()


flags = together(
    click.option("--karmada-kubeconfig", default="", help="Kubeconfig of the control plane."),
    click.option("--karmada-context", default="", help="Context in it.  [default: the current one]"),
    click.option("--cluster-name", default="", help="Name of this cluster in the control plane."),
    click.option("--host-name", default="", help="Name of the node it runs on.  [default: the name of the host]"),
    click.option("--bind-address", default="127.0.0.1", help="Address of /healthz."),
    click.option("--healthz-port", default=0, help="Port of /healthz; 0 disables it."),
    click.option(
        "--detectors", default="*", help="Detectors to run: * for all, NAME, -NAME to leave one out: coredns-detector."
    ),
    duration("--coredns-detect-period", "5s", "How often a name is resolved."),
    duration("--coredns-success-threshold", "30s", "How long resolving must succeed before the node says so."),
    duration("--coredns-failure-threshold", "30s", "How long resolving must fail before the node says so."),
    duration("--coredns-stale-threshold", "1m", "How long what a node said counts."),
    election_flags(LEASE, named=False, namespace="kube-system"),
    logging_flags,
)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Report whether the nodes of this cluster resolve the names of Services, until interrupted.

    \b
    Example:
      service-name-resolution-detector-example --cluster-name member1 --karmada-kubeconfig /etc/karmada/kubeconfig
    """
    refuse(_wrong(given))
    run_process(lambda: _process(given), f"Detector of cluster {given['cluster_name']}", given)


def _wrong(given: dict[str, Any]) -> list[FieldError]:
    from karmada.kube.objects.errors import invalid
    from karmada.problemdetector.name_resolution import DETECTOR

    wrong: list[FieldError] = []
    if not given["cluster_name"]:
        wrong.append(invalid("Options.ClusterName", "", "set --cluster-name"))
    if not given["karmada_kubeconfig"]:
        wrong.append(invalid("Options.KarmadaKubeconfig", "", "set --karmada-kubeconfig"))
    if given["coredns_detect_period"] <= 0:
        wrong.append(invalid("Options.CorednsDetectPeriod", "0s", "must be greater than 0"))
    unknown = [name for name in given["detectors"].split(",") if name.removeprefix("-") not in ("*", DETECTOR)]
    wrong += [invalid("Options.Detectors", name, f"the only detector is {DETECTOR}") for name in unknown]
    return wrong


def _process(given: dict[str, Any]) -> Process:
    from karmada.components.rows import is_enabled
    from karmada.kube.client.kubeconfig import load_config
    from karmada.problemdetector.name_resolution import DETECTOR
    from karmada.problemdetector.rules import Thresholds

    member = own_cluster_config("")
    health = (given["bind_address"], given["healthz_port"]) if given["healthz_port"] else None
    endpoints = Endpoints(health=health)
    if not is_enabled(DETECTOR, given["detectors"].split(",")):
        return Process(member, COMPONENT, default_gates(), endpoints=endpoints)
    success, failure, stale = (given[f"coredns_{name}_threshold"] for name in ("success", "failure", "stale"))
    return DetectorProcess(
        member,
        load_config(given["karmada_kubeconfig"], context=given["karmada_context"]),
        given["cluster_name"],
        given["host_name"] or socket.gethostname(),
        period=given["coredns_detect_period"],
        thresholds=Thresholds(success, failure, stale),
        election=election_from(given, LEASE),
        endpoints=endpoints,
        pod=_own_pod(),
    )


def _own_pod() -> Obj | None:
    """Return what events are about; None outside of a pod that is given its name."""
    name, namespace = os.environ.get("POD_NAME"), os.environ.get("POD_NAMESPACE")
    if not name or not namespace:
        return None
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}


if __name__ == "__main__":
    main()

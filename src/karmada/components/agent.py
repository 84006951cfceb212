"""`karmada-agent`: beside or in a cluster that the control plane cannot reach, it fetches the Works from there.

It registers its cluster (see joining/pull/own_cluster.py) and then runs the same controllers that the control plane
runs for clusters in mode Push, for this one only: execution, with the status of what it applied, and the cluster's own.
Of several copies one works and the others stand by. While the control plane is away it goes on with its caches, and
a second lease, in the cluster, keeps a copy that can still reach the control plane from working beside it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from karmada.components.election import Election, LocalLease
from karmada.components.flags import (
    Endpoints,
    check_controllers,
    cluster_status_flags,
    controller_process_flags,
    controllers_flag,
    duration,
    election_from,
    endpoints_from,
    gates_from,
    ignored,
    kube_api_flags,
    limits_from,
    own_cluster_config,
    refuse,
    settings_of,
    together,
    words,
)
from karmada.components.process import NOWHERE, Process, run_process
from karmada.components.program import CONTEXT, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from karmada.components.rows import Row
    from karmada.controllers.cert_rotation import CertRotation
    from karmada.controllers.context import Context, Settings
    from karmada.joining.join import Joining
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.back_off import BackOff
    from karmada.kube.runtime.features import FeatureGates

COMPONENT = "karmada-agent"
HEALTH_PORT = 10357
REPORTED = "KubeCredentials,KubeImpersonator"


def lease_of(cluster: str) -> str:
    """In the control plane: the lease for which the copies of an agent compete."""
    return f"{COMPONENT}-{cluster}"


class AgentProcess(Process):
    """The agent of one cluster: `control` is the way to the control plane, `member` to the cluster."""

    def __init__(
        self,
        control: RestConfig,
        member: RestConfig,
        joining: Joining,
        gates: FeatureGates,
        *,
        rows: Sequence[Row],
        settings: Settings | None = None,
        report: Sequence[str] = (),
        back_off: BackOff | None = None,
        election: Election | None = None,
        endpoints: Endpoints = NOWHERE,
        kubeconfig_namespace: str = "karmada-system",
    ) -> None:
        """`kubeconfig_namespace` is where, in the cluster, the Secret with the agent's kubeconfig is."""
        from karmada.components.certificate_expiry import LOOK_SECONDS, CertificateExpiry
        from karmada.components.rows import Shared, enabled_parts
        from karmada.controllers.context import OwnCluster
        from karmada.kube.client.client import Client
        from karmada.kube.client.http_transport import HttpTransport
        from karmada.kube.runtime.periodic import Periodic

        super().__init__(
            control,
            COMPONENT,
            gates,
            settings=settings,
            back_off=back_off,
            endpoints=endpoints,
            own=OwnCluster(joining.name, member),
        )
        self._member = Client(HttpTransport(replace(member, user_agent=COMPONENT)), field_manager=COMPONENT)
        self._joining = joining
        self._report = report
        self._elects = election is not None
        if election is not None:
            election = replace(election, local=LocalLease(self._member, COMPONENT, joining.namespace))
        self._control = control
        self._kubeconfig_namespace = kubeconfig_namespace
        if control.reloaded is not None:
            clock = self.manager.clock
            expiry = CertificateExpiry(control.reloaded, kubeconfig_namespace, clock)
            self.manager.add_component(Periodic("certificate-expiry", expiry.check, LOOK_SECONDS, clock))
        self.assembly.add(enabled_parts(rows, Shared(self.assembly.context)), election)

    async def prepare(self) -> None:
        """Register the cluster; whatever fails ends the process."""
        from karmada.joining.join import ensure_namespace
        from karmada.joining.pull.own_cluster import register_own_cluster
        from karmada.kube.objects.clock import SYSTEM

        self._check_certificate()
        await register_own_cluster(self.client, self._member, self._joining, report=self._report)
        if self._elects:
            await ensure_namespace(self._member, self._joining.namespace, SYSTEM)

    def _check_certificate(self) -> None:
        from karmada.components.certificate_expiry import advice, expired_at

        reloaded = self._control.reloaded
        end = expired_at(reloaded, self.manager.clock.now()) if reloaded is not None else None
        if end is not None:
            raise ValueError(advice(end, self._kubeconfig_namespace))

    async def run(self, stopping: asyncio.Event) -> None:
        try:
            await super().run(stopping)
        finally:
            await self._member.close()


flags = together(
    click.option("--karmada-kubeconfig", default="", help="Kubeconfig of the control plane.  [default: as kubectl]"),
    click.option("--karmada-context", default="", help="Context to use in that kubeconfig."),
    click.option(
        "--kubeconfig",
        default="",
        help="Kubeconfig of this cluster.  [default: the account of the pod, else as kubectl]",
    ),
    click.option("--cluster-name", default="", help="Name of this cluster in the control plane."),
    click.option(
        "--cluster-namespace",
        default="karmada-cluster",
        help="Namespace for accounts in this cluster, and for their tokens in the control plane.",
    ),
    click.option(
        "--cluster-api-endpoint", default="", help="Address under which the control plane reaches this cluster."
    ),
    click.option(
        "--proxy-server-address", default="", help="Proxy through which the control plane reaches this cluster."
    ),
    click.option("--cluster-provider", default="", help="Provider of this cluster."),
    click.option("--cluster-region", default="", help="Region of this cluster."),
    click.option(
        "--cluster-zones",
        default="",
        callback=lambda _ctx, _param, value: words(value),
        help="Comma-separated zones of this cluster.",
    ),
    click.option(
        "--report-secrets",
        default=REPORTED,
        callback=lambda _ctx, _param, value: words(value),
        help="Credentials that the control plane gets: KubeCredentials to work in this cluster, KubeImpersonator for "
        "users who reach it through the control plane, or None.",
    ),
    duration("--cluster-lease-duration", "40s", "How long the lease of this cluster says that it is valid."),
    click.option(
        "--cluster-lease-renew-interval-fraction",
        default=0.25,
        help="The part of that time after which the lease is renewed.",
    ),
    duration("--cert-rotation-checking-interval", "5m", "How often certRotation checks the certificate."),
    click.option(
        "--cert-rotation-remaining-time-threshold",
        default=0.2,
        help="The part of its lifetime that may remain when the certificate is renewed.",
    ),
    click.option(
        "--karmada-kubeconfig-namespace",
        default="karmada-system",
        help="Namespace of this cluster in which the Secret karmada-kubeconfig is, with the certificate.",
    ),
    controllers_flag,
    cluster_status_flags,
    ignored("--concurrent-cluster-syncs", "an agent has one cluster."),
    kube_api_flags,
    controller_process_flags("karmada-agent-NAME, for the cluster NAME", HEALTH_PORT),
)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Run the agent of a cluster in mode Pull, until interrupted.

    \b
    Example:
      karmada-agent --cluster-name member1 --karmada-kubeconfig karmada.kubeconfig --kubeconfig member1.kubeconfig
    """
    from karmada.components.agent_parts import check

    _check(given)
    check_controllers(check, given)
    gates = gates_from(given)
    run_process(lambda: _process(given, gates), f"Agent of cluster {given['cluster_name']}", given)


def _check(given: dict[str, Any]) -> None:
    from karmada.api.names import cluster_name_errors
    from karmada.kube.objects.errors import FieldErrors, invalid

    wrong = FieldErrors()
    for problem in cluster_name_errors(given["cluster_name"]):
        wrong.append(invalid("Options.ClusterName", given["cluster_name"], problem))
    for name, field in (
        ("cluster_status_update_frequency", "ClusterStatusUpdateFrequency"),
        ("cluster_lease_duration", "ClusterLeaseDuration"),
        ("cert_rotation_checking_interval", "CertRotationCheckingInterval"),
    ):
        if given[name] <= 0:
            wrong.append(invalid(f"Options.{field}", f"{given[name]:g}s", "must be greater than 0"))
    fraction = given["cluster_lease_renew_interval_fraction"]
    text = "must be greater than 0 and less than 1"
    if not 0 < fraction < 1:
        wrong.append(invalid("Options.ClusterLeaseRenewIntervalFraction", fraction, text))
    if not 0 < given["cert_rotation_remaining_time_threshold"] < 1:
        shown = given["cert_rotation_remaining_time_threshold"]
        wrong.append(invalid("Options.CertRotationRemainingTimeThreshold", shown, text))
    refuse(wrong)


def _process(given: dict[str, Any], gates: FeatureGates) -> AgentProcess:
    from karmada.components.agent_parts import agent_rows
    from karmada.controllers.cluster_status.heartbeat import Heartbeat
    from karmada.joining.join import Joining
    from karmada.kube.runtime.back_off import BackOff

    name, control, member = given["cluster_name"], _control_config(given), own_cluster_config(given["kubeconfig"])
    heartbeat = partial(
        Heartbeat,
        lease_duration=given["cluster_lease_duration"],
        renew_fraction=given["cluster_lease_renew_interval_fraction"],
    )
    joining = Joining(
        name=name,
        api_endpoint=given["cluster_api_endpoint"],
        namespace=given["cluster_namespace"],
        insecure=member.insecure,
        proxy_url=member.proxy_url or given["proxy_server_address"],
        provider=given["cluster_provider"],
        region=given["cluster_region"],
        zones=given["cluster_zones"],
    )
    return AgentProcess(
        control,
        member,
        joining,
        gates,
        rows=agent_rows(heartbeat, partial(_rotation, given, control)),
        settings=settings_of(given),
        report=given["report_secrets"],
        back_off=BackOff(**limits_from(given)),
        election=election_from(given, lease_of(name)),
        endpoints=endpoints_from(given),
        kubeconfig_namespace=given["karmada_kubeconfig_namespace"],
    )


def _control_config(given: dict[str, Any]) -> RestConfig:
    """Return the kubeconfig of the control plane; a single file is reloaded, as its certificate may be rotated."""
    from karmada.kube.client.kubeconfig import load_config
    from karmada.kube.client.reloading_kubeconfig import ReloadingKubeconfig

    if not given["karmada_kubeconfig"]:
        return load_config(None, given["karmada_context"])
    return ReloadingKubeconfig(given["karmada_kubeconfig"], given["karmada_context"]).config()


def _rotation(given: dict[str, Any], control: RestConfig, context: Context) -> CertRotation:
    from karmada.controllers.cert_rotation import CertRotation

    reloaded = control.reloaded
    return CertRotation(
        context,
        namespace=given["karmada_kubeconfig_namespace"],
        interval=given["cert_rotation_checking_interval"],
        threshold=given["cert_rotation_remaining_time_threshold"],
        renewed=reloaded.adopt if reloaded is not None else None,
    )


if __name__ == "__main__":
    main()

"""`karmada-scheduler`: a scheduler as a process of its own.

The control plane in one process has the scheduler that bindings get by default. Further ones, each with a name and a
lease of its own, schedule the bindings that name them, in their own way: other plug-ins, other gates. Of several
processes with one lease, one works and the others stand by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.components.election import DEFAULT_SCHEDULER, Election, scheduler_lease
from karmada.components.flags import (
    Address,
    client_flags,
    config_from,
    duration,
    election_flags,
    election_from,
    endpoint_flags,
    feature_gates_flag,
    gates_from,
    health_address_from,
    ignored,
    limits_from,
    logging_flags,
    rate_limiter_flags,
    switch,
    together,
)
from karmada.components.process import Process, run_process
from karmada.components.program import CONTEXT, Ignored, Program

if TYPE_CHECKING:
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.features import FeatureGates
    from karmada.scheduler.estimators.protocol import RemoteEstimator
    from karmada.scheduler.service.core import Options

COMPONENT = "karmada-scheduler"
HEALTH_PORT = 10351


class SchedulerProcess(Process):
    """A scheduler over the network, with its endpoints; `election` None: it works without a lease."""

    def __init__(
        self,
        config: RestConfig,
        options: Options,
        gates: FeatureGates,
        *,
        election: Election | None = None,
        metrics_address: Address | None = None,
        health_address: Address | None = None,
        remote: Sequence[RemoteEstimator] = (),
    ) -> None:
        super().__init__(config, COMPONENT, gates, metrics_address=metrics_address, health_address=health_address)
        self.assembly.add_scheduler(options, remote, election)


_NO_ESTIMATORS = "there is no client for estimators yet; the scheduler uses what clusters report of themselves."

flags = together(
    click.option("--scheduler-name", default=DEFAULT_SCHEDULER, help="Schedule the bindings with this schedulerName."),
    client_flags,
    election_flags("karmada-scheduler, for a scheduler of another name karmada-scheduler-NAME"),
    endpoint_flags(HEALTH_PORT),
    switch("--enable-empty-workload-propagation", False, "Propagate workloads of 0 replicas, too."),
    click.option(
        "--plugins",
        multiple=True,
        default=("*",),
        help="Comma-separated plug-ins: * enables all, NAME enables one, -NAME disables one.",
    ),
    feature_gates_flag,
    rate_limiter_flags,
    duration("--scheduler-estimator-timeout", "3s", f"No effect: {_NO_ESTIMATORS}", cls=Ignored),
    click.option("--scheduler-estimator-port", cls=Ignored, default=10352, help=f"No effect: {_NO_ESTIMATORS}"),
    ignored(
        "--enable-scheduler-estimator --disable-scheduler-estimator-in-pull-mode --insecure-skip-estimator-verify "
        "--scheduler-estimator-service-namespace --scheduler-estimator-service-prefix "
        "--scheduler-estimator-cert-file --scheduler-estimator-key-file --scheduler-estimator-ca-file",
        _NO_ESTIMATORS,
    ),
    logging_flags,
)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Schedule the bindings that name this scheduler, until interrupted.

    \b
    Example:
      karmada-scheduler --scheduler-name other --kubeconfig ~/.karmada/admin.kubeconfig --plugins '*,-ClusterLocality'
    """
    _check(given)
    gates = gates_from(given)
    run_process(lambda: _process(given, gates), f"Scheduler {given['scheduler_name']}", given)


def _check(given: dict[str, Any]) -> None:
    from karmada.kube.objects.errors import FieldErrors, invalid

    wrong = FieldErrors()
    if not given["scheduler_name"]:
        wrong.append(invalid("Options.SchedulerName", "", "should not be empty"))
    port, timeout = given["scheduler_estimator_port"], given["scheduler_estimator_timeout"]
    if not 0 <= port <= 65535:
        text = "must be a valid port between 0 and 65535 inclusive"
        wrong.append(invalid("Options.SchedulerEstimatorPort", port, text))
    if timeout < 0:
        text = "must be greater than or equal to 0"
        wrong.append(invalid("Options.SchedulerEstimatorTimeout", timeout, text))
    if wrong:
        raise click.ClickException("; ".join(map(str, wrong)))


def _process(given: dict[str, Any], gates: FeatureGates) -> SchedulerProcess:
    from karmada.scheduler.service.core import Options
    from karmada.scheduler.service.pauses import Limits

    options = Options(
        name=given["scheduler_name"],
        plugins=tuple(name for text in given["plugins"] for name in text.split(",")),
        propagate_empty=given["enable_empty_workload_propagation"],
        limits=Limits(**limits_from(given)),
    )
    return SchedulerProcess(
        config_from(given),
        options,
        gates,
        election=election_from(given, scheduler_lease(given["scheduler_name"])),
        metrics_address=given["metrics_bind_address"],
        health_address=health_address_from(given),
    )


if __name__ == "__main__":
    main()

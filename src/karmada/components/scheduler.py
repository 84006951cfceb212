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
from karmada.components.estimator_flags import estimator_errors, scheduler_client_from, scheduler_estimator_flags
from karmada.components.flags import (
    Endpoints,
    client_flags,
    config_from,
    election_flags,
    election_from,
    endpoint_flags,
    endpoints_from,
    feature_gates_flag,
    gates_from,
    hang_flags,
    limits_from,
    logging_flags,
    rate_limiter_flags,
    refuse,
    switch,
    together,
)
from karmada.components.process import NOWHERE, Process, run_process
from karmada.components.program import CONTEXT, Program

if TYPE_CHECKING:
    from karmada.estimator.client.options import ClientOptions
    from karmada.kube.client.config import RestConfig
    from karmada.kube.runtime.features import FeatureGates
    from karmada.scheduler.estimators.protocol import Estimator
    from karmada.scheduler.service.core import Options

COMPONENT = "karmada-scheduler"
HEALTH_PORT = 10351


def scheduler_process(
    config: RestConfig,
    options: Options,
    gates: FeatureGates,
    *,
    election: Election | None = None,
    endpoints: Endpoints = NOWHERE,
    estimators: Sequence[Estimator] = (),
    client: ClientOptions | None = None,
) -> Process:
    """Return a scheduler over the network, with its endpoints; `election` None: it works without a lease.

    `client`: how the estimators of the clusters are called, if they are.
    """
    process = Process(config, COMPONENT, gates, endpoints=endpoints)
    process.assembly.add_scheduler(options, estimators, election, client=client)
    return process


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
    scheduler_estimator_flags,
    hang_flags,
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
    from karmada.kube.objects.errors import invalid

    name = given["scheduler_name"]
    unnamed = [] if name else [invalid("Options.SchedulerName", name, "should not be empty")]
    refuse([*unnamed, *estimator_errors(given)])


def _process(given: dict[str, Any], gates: FeatureGates) -> Process:
    from karmada.scheduler.service.core import Options
    from karmada.scheduler.service.pauses import Limits

    options = Options(
        name=given["scheduler_name"],
        plugins=tuple(name for text in given["plugins"] for name in text.split(",")),
        propagate_empty=given["enable_empty_workload_propagation"],
        limits=Limits(**limits_from(given)),
    )
    return scheduler_process(
        config_from(given),
        options,
        gates,
        election=election_from(given, scheduler_lease(given["scheduler_name"])),
        endpoints=endpoints_from(given),
        client=scheduler_client_from(given),
    )


if __name__ == "__main__":
    main()

"""`karmada-descheduler`: takes replicas that found no node away from their cluster, as a process of its own.

It calls the estimator of every member cluster (karmada-scheduler-estimator). Of several such processes, and of one
beside a `karmada` that deschedules, one is the leader and the others stand by.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from karmada.components import election
from karmada.components.descheduler_flags import descheduling_errors, descheduling_flags, descheduling_options_from
from karmada.components.election import Election
from karmada.components.estimator_flags import estimator_client_flags, estimator_errors, estimator_options_from
from karmada.components.flags import (
    Endpoints,
    client_flags,
    config_from,
    election_flags,
    election_from,
    endpoint_flags,
    endpoints_from,
    hang_flags,
    logging_flags,
    refuse,
    together,
)
from karmada.components.process import NOWHERE, Process, run_process
from karmada.components.program import CONTEXT, Program
from karmada.features import default_gates

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from karmada.descheduler.controller import Options
    from karmada.estimator.client.options import ClientOptions
    from karmada.kube.client.config import RestConfig

COMPONENT = "karmada-descheduler"
HEALTH_PORT = 10358


class BuildInfo:
    """A metrics collector: the version."""

    def collect(self) -> Iterator[Metric]:
        from karmada.build_info import build_info

        yield build_info()


def descheduler_process(
    config: RestConfig,
    options: Options,
    estimators: ClientOptions,
    *,
    election: Election | None = None,
    endpoints: Endpoints = NOWHERE,
) -> Process:
    """Return a descheduler over the network, with its endpoints; `election` None: it works without a lease."""
    process = Process(config, COMPONENT, default_gates(), endpoints=endpoints)
    process.assembly.add_descheduler(options, election, client=estimators)
    process.metrics.registry.register(BuildInfo())
    return process


flags = together(
    client_flags,
    descheduling_flags,
    estimator_client_flags,
    election_flags(election.DESCHEDULER, named=False),
    endpoint_flags(HEALTH_PORT),
    hang_flags,
    logging_flags,
)


@click.command(COMPONENT, cls=Program, context_settings=CONTEXT)
@flags
def main(**given: Any) -> None:
    """Take replicas that find no node away from their cluster, until interrupted; the scheduler places them elsewhere.

    \b
    Example:
      karmada-descheduler --kubeconfig ~/.karmada/admin.kubeconfig --unschedulable-threshold 1m
    """
    refuse([*descheduling_errors(given), *estimator_errors(given)])
    run_process(lambda: _process(given), "Descheduler", given)


def _process(given: dict[str, Any]) -> Process:
    from karmada.kube.client.grpc_extra import missing_grpc

    try:
        return descheduler_process(
            config_from(given),
            descheduling_options_from(given),
            estimator_options_from(given),
            election=election_from(given, election.DESCHEDULER),
            endpoints=endpoints_from(given),
        )
    except ModuleNotFoundError as error:
        raise ValueError(missing_grpc(COMPONENT, error)) from error


if __name__ == "__main__":
    main()

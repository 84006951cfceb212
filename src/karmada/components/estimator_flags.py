"""The flags about estimators that the scheduler and the descheduler have, as programs and in `karmada`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from karmada.components.election import NAMESPACE
from karmada.components.flags import Given, duration, refuse, switch, together
from karmada.kube.client.grpc_extra import missing_grpc

if TYPE_CHECKING:
    from karmada.estimator.client.options import ClientOptions
    from karmada.kube.objects.errors import FieldError

_FILES = ("cert", "key", "ca")

estimator_client_flags = together(
    duration("--scheduler-estimator-timeout", "3s", "Deadline of one estimate, for all clusters together."),
    click.option(
        "--scheduler-estimator-service-namespace", default=NAMESPACE, help="Namespace of the estimators' Services."
    ),
    click.option(
        "--scheduler-estimator-service-prefix",
        default="karmada-scheduler-estimator",
        help="The Service of a cluster's estimator is PREFIX-CLUSTER.",
    ),
    click.option("--scheduler-estimator-port", default=10352, help="Port of the estimators' Services."),
    click.option("--scheduler-estimator-cert-file", default="", help="Client certificate shown to estimators."),
    click.option("--scheduler-estimator-key-file", default="", help="Its key."),
    click.option(
        "--scheduler-estimator-ca-file",
        default="",
        help="Authority of the estimators' certificates; without it they are called without TLS.",
    ),
    switch("--insecure-skip-estimator-verify", False, "Call estimators over TLS without verifying their certificates."),
)
scheduler_estimator_flags = together(
    switch("--enable-scheduler-estimator", False, "Call the estimators of the clusters for accurate estimates."),
    switch(
        "--disable-scheduler-estimator-in-pull-mode",
        False,
        "Do not connect to estimators of clusters in mode Pull; bindings that may go there get no accurate estimates.",
    ),
    estimator_client_flags,
)

in_process_estimator_flag = switch(
    "--in-process-estimator",
    True,
    "Estimate node by node what clusters in mode Push can take, from the nodes and pods that are watched anyway.",
)


def estimator_options_from(given: Given) -> ClientOptions:
    """Raise click.ClickException with the fields that cannot be, as Karmada names them."""
    from karmada.estimator.client.options import ClientOptions, Tls, Whereabouts

    refuse(list(estimator_errors(given)))
    certificate, key, authority = (_file(given, name) for name in _FILES)
    return ClientOptions(
        where=Whereabouts(
            namespace=given["scheduler_estimator_service_namespace"],
            prefix=given["scheduler_estimator_service_prefix"],
            port=given["scheduler_estimator_port"],
        ),
        tls=Tls(
            authority=authority, certificate=certificate, key=key, insecure=given["insecure_skip_estimator_verify"]
        ),
        timeout=given["scheduler_estimator_timeout"],
        skip_pull=given.get("disable_scheduler_estimator_in_pull_mode", False),
    )


def scheduler_client_from(given: Given) -> ClientOptions | None:
    """Return how a scheduler calls estimators; None if it does not.

    Raises click.ClickException also without gRPC.
    """
    options = estimator_options_from(given)
    if not given["enable_scheduler_estimator"]:
        return None
    try:
        import karmada.kube.client.grpc_library  # noqa: F401
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_grpc("--enable-scheduler-estimator", error)) from None
    return options


def estimator_errors(given: Given) -> Iterator[FieldError]:
    from karmada.kube.objects.errors import invalid

    port, timeout = given["scheduler_estimator_port"], given["scheduler_estimator_timeout"]
    if not 0 <= port <= 65535:
        text = "must be a valid port between 0 and 65535 inclusive"
        yield invalid("Options.SchedulerEstimatorPort", port, text)
    if timeout < 0:
        yield invalid("Options.SchedulerEstimatorTimeout", f"{timeout:g}s", "must be greater than or equal to 0")


def _file(given: Given, name: str) -> Path | None:
    path: str = given[f"scheduler_estimator_{name}_file"]
    if not path:
        return None
    found = Path(path).expanduser()
    if not found.is_file():
        raise click.BadParameter(f'there is no file "{path}"', param_hint=f"--scheduler-estimator-{name}-file")
    return found

"""The flags of the descheduler, as a program and in `karmada`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from karmada.components.flags import F, Given, duration, refuse, switch, together
from karmada.components.program import Dependent

if TYPE_CHECKING:
    from karmada.descheduler.controller import Options
    from karmada.kube.objects.errors import FieldError


def _flags(**more: Any) -> Callable[[F], F]:
    return together(
        duration(
            "--descheduling-interval",
            "2m",
            "How often workloads with too few ready replicas are checked; 1s at least.",
            **more,
        ),
        duration(
            "--unschedulable-threshold",
            "5m",
            "How long a replica may find no node in its cluster before it is taken away from there.",
            **more,
        ),
    )


descheduling_flags = _flags()
optional_descheduling_flags = together(
    switch(
        "--enable-descheduler",
        False,
        "Take replicas that find no node away from their cluster, as the add-on karmada-descheduler does. "
        "For clusters in mode Pull it needs --enable-scheduler-estimator.",
    ),
    _flags(cls=Dependent, needs="--enable-descheduler"),
)


def descheduling_options_from(given: Given) -> Options:
    """Raise click.ClickException with the fields that cannot be, as Karmada names them."""
    from karmada.descheduler.controller import Options

    refuse(list(descheduling_errors(given)))
    return Options(interval=given["descheduling_interval"], threshold=given["unschedulable_threshold"])


def descheduling_errors(given: Given) -> Iterator[FieldError]:
    from karmada.kube.objects.errors import invalid

    for flag, field in (
        ("descheduling_interval", "DeschedulingInterval"),
        ("unschedulable_threshold", "UnschedulableThreshold"),
    ):
        if given[flag] < 0:
            yield invalid(f"Options.{field}", f"{given[flag]:g}s", "must be greater than or equal to 0")

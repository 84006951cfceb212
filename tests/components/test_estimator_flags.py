from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from karmada.components import karmada, scheduler
from karmada.components.estimator_flags import estimator_options_from, scheduler_client_from
from karmada.estimator.client.options import ClientOptions, Tls, Whereabouts
from tests.support.cases import cases


def options(*arguments: str, program: click.Command = scheduler.main) -> ClientOptions:
    return estimator_options_from(program.make_context("x", list(arguments)).params)


@cases(scheduler.main, karmada.main)
def test_the_defaults_are_those_of_karmada(program: click.Command) -> None:
    assert options(program=program) == ClientOptions(
        where=Whereabouts(namespace="karmada-system", prefix="karmada-scheduler-estimator", port=10352),
        tls=Tls(),
        timeout=3.0,
        skip_pull=False,
    )


@cases(scheduler.main, karmada.main)
def test_every_flag_counts(program: click.Command, tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).write_text("pem")
    found = options(
        *(f"--scheduler-estimator-{name}-file={tmp_path / name}" for name in ("cert", "key", "ca")),
        "--scheduler-estimator-service-namespace=ns",
        "--scheduler-estimator-service-prefix=est",
        "--scheduler-estimator-port=7",
        "--scheduler-estimator-timeout=500ms",
        "--disable-scheduler-estimator-in-pull-mode",
        "--insecure-skip-estimator-verify=true",
        program=program,
    )
    assert found == ClientOptions(
        where=Whereabouts(namespace="ns", prefix="est", port=7),
        tls=Tls(authority=tmp_path / "ca", certificate=tmp_path / "cert", key=tmp_path / "key", insecure=True),
        timeout=0.5,
        skip_pull=True,
    )


@cases(
    ("--scheduler-estimator-port=-1", "Options.SchedulerEstimatorPort: Invalid value: -1: must be a valid port"),
    ("--scheduler-estimator-timeout=-1s", 'Options.SchedulerEstimatorTimeout: Invalid value: "-1s": must be'),
    ("--scheduler-estimator-ca-file=/nowhere/ca.crt", 'there is no file "/nowhere/ca.crt"'),
)
def test_what_cannot_be_is_refused(argument: str, text: str) -> None:
    with pytest.raises(click.ClickException) as refused:
        options(argument)
    assert text in refused.value.format_message()


@cases(scheduler.main, karmada.main)
def test_estimators_are_called_only_if_that_is_enabled(program: click.Command) -> None:
    assert scheduler_client_from(program.make_context("x", []).params) is None
    assert scheduler_client_from(program.make_context("x", ["--enable-scheduler-estimator"]).params) == ClientOptions()


def test_it_reports_which_libraries_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "karmada.kube.client.grpc_library", raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(click.ClickException) as refused:
        scheduler_client_from(scheduler.main.make_context("x", ["--enable-scheduler-estimator"]).params)
    text = "--enable-scheduler-estimator needs the Python package of grpc: pip install 'pykarmada[grpc]'"
    assert refused.value.format_message() == text

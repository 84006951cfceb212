"""karmada-controller-manager: its flags become settings, and what cannot be is refused."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from karmada.components import controller_manager, flags, scheduler
from karmada.components.controller_manager import main
from karmada.components.program import Ignored
from karmada.controllers.context import Settings


def given(*arguments: str, program: click.Command = main) -> dict[str, Any]:
    with program.make_context("test", list(arguments)) as context:
        return context.params


def test_every_setting_has_a_flag_with_the_same_default() -> None:
    assert flags.settings_from(given()) == Settings()
    assert {field.name for field in fields(Settings)} <= set(given())


def test_flags_reach_their_settings() -> None:
    settings = flags.settings_from(
        given(
            "--cluster-failure-threshold=1m30s",
            "--controllers=*,-namespace",
            "--skipped-propagating-namespaces=kube-.*,own-.*",
            "--concurrent-cluster-syncs=7",
            "--enable-cluster-resource-modeling=false",
        )
    )
    assert settings == Settings(
        cluster_failure_threshold=90.0,
        controllers=("*", "-namespace"),
        skipped_propagating_namespaces=("kube-.*", "own-.*"),
        concurrent_cluster_syncs=7,
        enable_cluster_resource_modeling=False,
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ["--cluster-status-update-frequency=0s"],
            'Options.ClusterStatusUpdateFrequency: Invalid value: "0s": must be greater than 0',
        ),
        (["--concurrent-cluster-syncs=0"], "Options.ConcurrentClusterSyncs: Invalid value: 0: must be greater than 0"),
        (["--controllers=*,nothing"], '"nothing" is not in the list of known controllers'),
        (["--controllers=*,-workStatus"], "enable both or disable both"),
        (["--cluster-monitor-period=often"], "is not a duration"),
        (["--kubeconfig=/nowhere/config"], "/nowhere/config"),
        (["extra"], "Got unexpected extra argument (extra)"),
    ],
)
def test_flags_that_make_no_sense_are_refused(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code != 0
    assert problem in result.output


DOCUMENTED = {
    "controller manager of the installer": (
        main,
        "--kubeconfig=/nowhere --metrics-bind-address=127.0.0.1:8080 --health-probe-bind-address=127.0.0.1:10357 "
        "--cluster-status-update-frequency=10s --leader-elect-resource-namespace=karmada-system --v=2",
        "",
    ),
    "controller manager of an older document": (
        main,
        "--kubeconfig=/nowhere --bind-address=0.0.0.0 --cluster-status-update-frequency=10s --secure-port=10357 "
        "--leader-elect=true --leader-elect-resource-namespace=karmada-system --v=4",
        "",
    ),
    "scheduler of the installer": (
        scheduler.main,
        "--kubeconfig=/nowhere --metrics-bind-address=127.0.0.1:8080 --health-probe-bind-address=127.0.0.1:10351 "
        "--enable-scheduler-estimator=true --leader-elect=true --scheduler-estimator-ca-file=ca.crt "
        "--scheduler-estimator-cert-file=c.crt --scheduler-estimator-key-file=c.key "
        "--leader-elect-resource-namespace=karmada-system --v=2",
        "--enable-scheduler-estimator, --scheduler-estimator-cert-file, --scheduler-estimator-key-file, "
        "--scheduler-estimator-ca-file",
    ),
    "scheduler of an older document": (
        scheduler.main,
        "--kubeconfig=/nowhere --bind-address=0.0.0.0 --secure-port=10351 --leader-elect=true "
        "--leader-elect-resource-namespace=karmada-system --scheduler-estimator-timeout=3s "
        "--enable-scheduler-estimator=true --v=4",
        "--scheduler-estimator-timeout, --enable-scheduler-estimator",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_command_lines_of_documents_are_accepted_with_at_most_one_warning(name: str) -> None:
    program, line, without_effect = DOCUMENTED[name]
    result = CliRunner().invoke(program, line.split())
    warning = f"Warning: without effect here: {without_effect} (--help says why)\n" if without_effect else ""
    assert result.output.startswith(warning)
    assert result.output.count("Warning") == bool(without_effect)
    assert "/nowhere" in result.output  # it got as far as connecting


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ([], ("0.0.0.0", 10357)),
        (["--secure-port=1234"], ("0.0.0.0", 1234)),
        (["--bind-address=127.0.0.1"], ("127.0.0.1", 10357)),
        (["--health-probe-bind-address=0"], None),
        (["--health-probe-bind-address=[::1]:99"], ("::1", 99)),
    ],
)
def test_the_health_address_has_an_older_form(arguments: list[str], address: tuple[str, int] | None) -> None:
    assert flags.health_address_from(given(*arguments)) == address


@pytest.mark.parametrize("program", [controller_manager.main, scheduler.main])
def test_every_flag_says_in_a_sentence_what_it_does(program: click.Command) -> None:
    texts = {param.opts[0]: param.help or "" for param in program.params if isinstance(param, click.Option)}
    assert [flag for flag, text in texts.items() if not text[:1].isupper() or "." not in text] == []
    ignored = [param for param in program.params if isinstance(param, Ignored)]
    assert ignored
    assert all((param.help or "").startswith("No effect: ") for param in ignored)

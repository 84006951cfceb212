"""The flags of the programs: what they set, what is refused, and which command lines of Karmada are accepted."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from karmada.components import (
    agent,
    aggregated_apiserver,
    apiserver,
    controller_manager,
    descheduler,
    flags,
    karmada,
    kube_apiserver,
    kube_controller_manager,
    scheduler,
    scheduler_estimator,
    sim,
    webhook,
)
from karmada.components.controller_manager import main
from karmada.components.program import Ignored
from karmada.components.server_flags import server_config
from karmada.controllers.context import Settings
from tests.support.cases import cases


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


@cases(
    (
        ["--cluster-status-update-frequency=0s"],
        'Options.ClusterStatusUpdateFrequency: Invalid value: "0s": must be greater than 0',
    ),
    (
        ["--horizontal-pod-autoscaler-sync-period=0s"],
        'Options.HorizontalPodAutoscalerSyncPeriod: Invalid value: "0s": must be greater than 0',
    ),
    (
        ["--federated-resource-quota-sync-period=0"],
        'Options.FederatedResourceQuotaSyncPeriod: Invalid value: "0s": must be greater than 0',
    ),
    (["--concurrent-cluster-syncs=0"], "Options.ConcurrentClusterSyncs: Invalid value: 0: must be greater than 0"),
    (["--controllers=*,nothing"], '"nothing" is not in the list of known controllers'),
    (["--controllers=*,-workStatus"], "enable both or disable both"),
    (["--cluster-monitor-period=often"], "is not a duration"),
    (["--kubeconfig=/nowhere/config"], "/nowhere/config"),
    (["extra"], "Got unexpected extra argument (extra)"),
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
    "agent of karmadactl register": (
        agent.main,
        "--karmada-kubeconfig=/nowhere --cluster-name=m1 --cluster-api-endpoint=https://10.0.0.1:6443 "
        "--cluster-provider= --cluster-region= --cluster-zones= --controllers=* --proxy-server-address= "
        "--leader-elect-resource-namespace=karmada-system --cluster-namespace=karmada-cluster "
        "--cluster-status-update-frequency=10s --metrics-bind-address=:8080 --health-probe-bind-address=0.0.0.0:10357 "
        "--v=2 --kubeconfig=/nowhere",
        "",
    ),
    "agent of a manifest": (
        agent.main,
        "--karmada-kubeconfig=/nowhere --karmada-context=karmada-apiserver --cluster-name=m1 --kubeconfig=/nowhere "
        "--cluster-status-update-frequency=10s --report-secrets=KubeImpersonator --concurrent-work-syncs=10 "
        "--feature-gates=CustomizedClusterResourceModeling=true,MultiClusterService=true --logging-format=json --v=4",
        "--concurrent-work-syncs",
    ),
    "API server of the installer": (
        kube_apiserver.main,
        "--data-dir=/dev/null/x --allow-privileged=true --authorization-mode=Node,RBAC --client-ca-file=/dev/null "
        "--enable-bootstrap-token-auth=true --bind-address=0.0.0.0 --runtime-config= --apiserver-count=1 "
        "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount --secure-port=5443 "
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local --service-account-key-file=/dev/null "
        "--service-account-signing-key-file=/dev/null --service-cluster-ip-range=10.96.0.0/12 "
        "--proxy-client-cert-file=/dev/null --proxy-client-key-file=/dev/null "
        "--requestheader-allowed-names=front-proxy-client --requestheader-client-ca-file=/dev/null "
        "--requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group "
        "--requestheader-username-headers=X-Remote-User --tls-cert-file=/dev/null "
        "--tls-private-key-file=/dev/null --tls-min-version=VersionTLS13 --v=2",
        "--allow-privileged, --authorization-mode, --runtime-config, --apiserver-count",
    ),
    "kube-controller-manager of the installer": (
        kube_controller_manager.main,
        "--allocate-node-cidrs=true --kubeconfig=/nowhere --authentication-kubeconfig=/nowhere "
        "--authorization-kubeconfig=/nowhere --bind-address=0.0.0.0 --client-ca-file=/dev/null "
        "--cluster-cidr=10.244.0.0/16 --cluster-name=karmada-apiserver --cluster-signing-cert-file=/dev/null "
        "--cluster-signing-key-file=/dev/null --controllers=namespace,garbagecollector,serviceaccount-token,"
        "ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation "
        "--leader-elect=true --leader-elect-resource-namespace=karmada-system --node-cidr-mask-size=24 "
        "--root-ca-file=/dev/null --service-account-private-key-file=/dev/null "
        "--service-cluster-ip-range=10.96.0.0/12 --use-service-account-credentials=true --v=2",
        "--allocate-node-cidrs, --cluster-cidr, --node-cidr-mask-size, --service-cluster-ip-range, --cluster-name, "
        "--use-service-account-credentials",
    ),
    "API server of an older document": (
        apiserver.main,
        "--data-dir=/dev/null/x --allow-privileged=true --enable-admission-plugins=NodeRestriction",
        "--allow-privileged, --enable-admission-plugins",
    ),
    "descheduler of the installer": (
        descheduler.main,
        "--kubeconfig=/nowhere --metrics-bind-address=127.0.0.1:8080 --health-probe-bind-address=127.0.0.1:10358 "
        "--leader-elect-resource-namespace=karmada-system --scheduler-estimator-ca-file=ca.crt "
        "--scheduler-estimator-cert-file=c.crt --scheduler-estimator-key-file=c.key --v=2",
        "",
    ),
    "estimator of the installer": (
        scheduler_estimator.main,
        "--kubeconfig=/nowhere --cluster-name=member1 --grpc-auth-cert-file=/dev/null --grpc-auth-key-file=/dev/null "
        "--grpc-client-ca-file=/dev/null --metrics-bind-address=127.0.0.1:8080 "
        "--health-probe-bind-address=127.0.0.1:10351 --kube-api-qps=20 --parallelism=16",
        "--kube-api-qps, --parallelism",
    ),
    "webhook of the installer": (
        webhook.main,
        "--kubeconfig=/nowhere --cert-dir=/dev/null/x --bind-address=127.0.0.1 --metrics-bind-address=127.0.0.1:8080 "
        "--health-probe-bind-address=127.0.0.1:8000 --secure-port=8443 --v=2",
        "",
    ),
    "scheduler of the installer": (
        scheduler.main,
        "--kubeconfig=/nowhere --metrics-bind-address=127.0.0.1:8080 --health-probe-bind-address=127.0.0.1:10351 "
        "--enable-scheduler-estimator=true --leader-elect=true --scheduler-estimator-ca-file=ca.crt "
        "--scheduler-estimator-cert-file=c.crt --scheduler-estimator-key-file=c.key "
        "--leader-elect-resource-namespace=karmada-system --v=2",
        "",
    ),
    "scheduler of an older document": (
        scheduler.main,
        "--kubeconfig=/nowhere --bind-address=0.0.0.0 --secure-port=10351 --leader-elect=true "
        "--leader-elect-resource-namespace=karmada-system --scheduler-estimator-timeout=3s "
        "--enable-scheduler-estimator=true --v=4",
        "",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_command_lines_of_documents_are_accepted_with_at_most_one_warning(name: str) -> None:
    program, line, without_effect = DOCUMENTED[name]
    result = CliRunner().invoke(program, line.split())
    warning = f"Warning: without effect here: {without_effect} (--help says why)\n" if without_effect else ""
    assert result.output.startswith(warning)
    assert result.output.count("Warning") == bool(without_effect)
    assert "/nowhere" in result.output or "/dev/null/x" in result.output  # flags are done, what they name is not there


@cases(
    ([], ("0.0.0.0", 10357)),
    (["--secure-port=1234"], ("0.0.0.0", 1234)),
    (["--bind-address=127.0.0.1"], ("127.0.0.1", 10357)),
    (["--health-probe-bind-address=0"], None),
    (["--health-probe-bind-address=[::1]:99"], ("::1", 99)),
)
def test_the_health_address_has_an_older_form(arguments: list[str], address: tuple[str, int] | None) -> None:
    assert flags.health_address_from(given(*arguments)) == address


@pytest.mark.parametrize(
    ("flag", "default"),
    {
        "karmada_kubeconfig": "",
        "karmada_context": "",
        "kubeconfig": "",
        "cluster_name": "",
        "cluster_namespace": "karmada-cluster",
        "cluster_api_endpoint": "",
        "proxy_server_address": "",
        "cluster_provider": "",
        "cluster_region": "",
        "cluster_zones": (),
        "report_secrets": ("KubeCredentials", "KubeImpersonator"),
        "cluster_status_update_frequency": 10.0,
        "cluster_lease_duration": 40.0,
        "cluster_lease_renew_interval_fraction": 0.25,
        "cert_rotation_checking_interval": 300.0,
        "cert_rotation_remaining_time_threshold": 0.2,
        "karmada_kubeconfig_namespace": "karmada-system",
        "cluster_success_threshold": 30.0,
        "cluster_failure_threshold": 30.0,
        "cluster_cache_sync_timeout": 120.0,
        "enable_cluster_resource_modeling": True,
        "controllers": ("*",),
        "leader_elect": True,
        "leader_elect_resource_namespace": "karmada-system",
        "leader_elect_lease_duration": 15.0,
        "leader_elect_renew_deadline": 10.0,
        "leader_elect_retry_period": 2.0,
        "rate_limiter_base_delay": 0.005,
        "rate_limiter_max_delay": 1000.0,
        "metrics_bind_address": ("0.0.0.0", 8080),
        "health_probe_bind_address": ("0.0.0.0", 10357),
        "logging_format": "text",
    }.items(),
)
def test_an_agent_has_the_defaults_of_karmada(flag: str, default: object) -> None:
    assert given(program=agent.main)[flag] == default


@cases(
    ([], 'Options.ClusterName: Invalid value: "": must be not empty'),
    (["--cluster-name=M1"], 'Options.ClusterName: Invalid value: "M1": a lowercase RFC 1123 label'),
    (
        ["--cluster-name=m1", "--cluster-lease-renew-interval-fraction=1"],
        "Options.ClusterLeaseRenewIntervalFraction: Invalid value: 1.0: must be greater than 0 and less than 1",
    ),
    (
        ["--cluster-name=m1", "--cluster-lease-duration=0s"],
        'Options.ClusterLeaseDuration: Invalid value: "0s": must be greater than 0',
    ),
    (
        ["--cluster-name=m1", "--cert-rotation-remaining-time-threshold=1.5"],
        "Options.CertRotationRemainingTimeThreshold: Invalid value: 1.5: must be greater than 0 and less than 1",
    ),
    (["--cluster-name=m1", "--controllers=*,detector"], '"detector" is not in the list of known controllers'),
    (["--cluster-name=m1", "extra"], "Got unexpected extra argument (extra)"),
)
def test_flags_of_an_agent_that_make_no_sense_are_refused(arguments: list[str], problem: str) -> None:
    result = CliRunner().invoke(agent.main, arguments)
    assert result.exit_code != 0
    assert problem in result.output


SERVERS = (aggregated_apiserver.main, apiserver.main, karmada.main, kube_apiserver.main, sim.main)
PROGRAMS = (
    *SERVERS,
    agent.main,
    controller_manager.main,
    descheduler.main,
    kube_controller_manager.main,
    scheduler.main,
    scheduler_estimator.main,
    webhook.main,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_every_flag_says_in_a_sentence_what_it_does(program: click.Command) -> None:
    texts = {param.opts[0]: param.help or "" for param in program.params if isinstance(param, click.Option)}
    assert [flag for flag, text in texts.items() if not text[:1].isupper() or "." not in text] == []
    without_effect = [param.help or "" for param in program.params if isinstance(param, Ignored)]
    assert all(text.startswith("No effect: ") for text in without_effect)


def test_the_all_in_one_has_the_flags_of_its_parts() -> None:
    def names(program: click.Command) -> set[str]:
        return {name for param in program.params for name in param.opts if name.startswith("--")}

    of_processes = {"--kubeconfig", "--master", "--metrics-bind-address", "--health-probe-bind-address"}
    own = names(controller_manager.main) - of_processes
    elections = {name for name in own if name.startswith(("--leader-elect", "--rate-limiter"))}
    assert names(apiserver.main) <= names(karmada.main)
    assert "--allow-no-execute-taint-policy" in names(karmada.main)
    left_out = own - elections - names(karmada.main) - {"--share-work"}  # which is --workers there
    assert left_out == {"--kube-api-qps", "--kube-api-burst", "--enable-pprof", "--profiling-bind-address"}


@cases(
    ([], ""),
    (["--storage=memory://"], "memory://"),
    (["--etcd-servers=http://a:2379,http://b:2379"], "etcd://a:2379,b:2379"),
    (
        ["--etcd-servers=https://a:2379", "--etcd-cafile=ca.crt", "--etcd-prefix=/x"],
        "etcd://a:2379?prefix=/x&cacert=ca.crt",
    ),
)
def test_the_store_is_named_by_either_form(arguments: list[str], storage: str) -> None:
    assert server_config(given(*arguments, program=apiserver.main)).storage == storage


def test_two_stores_are_refused() -> None:
    with pytest.raises(click.UsageError, match="use one of them"):
        server_config(given("--storage=memory://", "--etcd-servers=http://a", program=apiserver.main))


@cases(["--anonymous-auth=false"], ["--no-anonymous-auth"])
def test_anonymous_requests_can_be_refused_in_either_form(arguments: list[str]) -> None:
    assert not server_config(given(*arguments, program=apiserver.main)).anonymous


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_help_names_no_empty_default(program: click.Command) -> None:
    assert '[default: ""]' not in CliRunner().invoke(program, ["--help"]).output

"""Which addons a command is about, what they consist of, and that their command lines are those of the programs."""

from __future__ import annotations

import importlib
from dataclasses import replace
from importlib.util import find_spec

import click
import pytest

from karmada.install.addons.catalog import ADDONS, chosen
from karmada.install.addons.settings import Settings
from karmada.install.images import IMAGE, ImageSource
from karmada.install.names import CONFIGURED
from karmada.install.options import Component, InstallError
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.restricted import privileges

SETTINGS = Settings(
    cluster="member1",
    member_kubeconfig=b"{}",
    authority=b"authority",
    store=["--etcd-servers=https://etcd-0.etcd.karmada-system.svc.cluster.local:2379"],
)
EVERY = pytest.mark.parametrize("name", ADDONS)


def workload(name: str, settings: Settings = SETTINGS) -> Obj:
    return ADDONS[name].host(settings)[-1]


def main_container(name: str, settings: Settings = SETTINGS) -> Obj:
    found: Obj = workload(name, settings)["spec"]["template"]["spec"]["containers"][0]
    return found


@cases(
    (["karmada-search"], "", ["karmada-search"], False),
    (["karmada-search", "karmada-descheduler"], "", ["karmada-descheduler", "karmada-search"], False),
    (["karmada-scheduler-estimator"], "m1", ["karmada-scheduler-estimator"], False),
    (["all"], "", [name for name in ADDONS if name != "karmada-scheduler-estimator"], True),
    (["all"], "m1", list(ADDONS), False),
    (["all", "karmada-search"], "m1", list(ADDONS), False),
)
def test_addons_are_chosen_in_their_order(names: list[str], cluster: str, found: list[str], warned: bool) -> None:
    addons, warnings = chosen(names, cluster)
    assert [addon.name for addon in addons] == found
    assert bool(warnings) is warned


@cases(
    ([], "", "at least one addon must be named"),
    (["karmada-operator"], "", r"addon karmada-operator is not be supported now \(known: karmada-descheduler, "),
    (["karmada-scheduler-estimator"], "", r"name the member with --cluster \(-C\)"),
    (["karmada-search"], "m1", "--cluster is for karmada-scheduler-estimator only"),
)
def test_names_that_make_no_sense_are_refused(names: list[str], cluster: str, problem: str) -> None:
    with pytest.raises(InstallError, match=problem):
        chosen(names, cluster)


@EVERY
def test_its_program_accepts_its_command_line(name: str) -> None:
    module = f"karmada.components.{name.removeprefix('karmada-').replace('-', '_')}"
    if find_spec(module) is None:
        pytest.skip(f"{name} is not part of this version")
    program: click.Command = importlib.import_module(module).main
    command, *flags = main_container(name)["command"]
    assert command == f"/bin/{name}"
    files = {param.opts[0] for param in program.params if isinstance(param.type, click.Path)}
    existing = [f"{flag.partition('=')[0]}=/dev/null" if flag.partition("=")[0] in files else flag for flag in flags]
    resolved = [flag.replace("$(POD_IP)", "127.0.0.1") for flag in existing]
    with program.make_context(name, resolved) as context:
        assert context.params["verbosity"] in (0, 2)


@EVERY
def test_pods_keep_to_the_restricted_profile_and_have_no_token(name: str) -> None:
    assert privileges(ADDONS[name].host(SETTINGS)) == []
    assert workload(name)["spec"]["template"]["spec"]["automountServiceAccountToken"] is False


@EVERY
def test_pods_are_ready_by_a_probe_and_get_the_certificates_that_they_name(name: str) -> None:
    main, spec = main_container(name), workload(name)["spec"]["template"]["spec"]
    assert main["readinessProbe"]
    certificates = [volume for volume in spec["volumes"] if volume["name"] == "karmada-cert"]
    files = {item["key"] for volume in certificates for item in volume["secret"]["items"]}
    assert files == {word.rpartition("/")[2] for word in main["command"] if "/etc/karmada/pki/" in word}
    assert "ca.key" not in files


@EVERY
def test_deinit_does_not_take_an_addon_for_a_part_of_the_installation(name: str) -> None:
    assert not [obj for obj in ADDONS[name].host(SETTINGS) if "karmada.io/bootstrapping" in str(obj["metadata"])]


@EVERY
def test_the_installation_has_a_kubeconfig_for_it(name: str) -> None:
    assert ADDONS[name].configured is (name in CONFIGURED)


@EVERY
def test_images_replicas_and_priorities_are_those_of_the_flags(name: str) -> None:
    assert main_container(name)["image"] == IMAGE
    own = Component(image="", replicas=3, priority_class="important", extra_args=())
    private = Settings(cluster="m", components={name: own}, images=ImageSource(private_registry="registry.local:5000"))
    assert main_container(name, private)["image"] == f"registry.local:5000/{IMAGE.rpartition('/')[2]}"
    spec = workload(name, private)["spec"]
    assert (spec["replicas"], spec["template"]["spec"]["priorityClassName"]) == (3, "important")


def test_an_estimator_is_found_by_the_scheduler_and_has_access_to_its_member() -> None:
    secret, service, _, deployment = ADDONS["karmada-scheduler-estimator"].host(SETTINGS)
    assert secret["metadata"]["name"] == "member1-kubeconfig"
    assert secret["data"] == {"member1-kubeconfig": "e30="}
    assert service["metadata"]["name"] == deployment["metadata"]["name"] == "karmada-scheduler-estimator-member1"
    assert service["spec"]["ports"][0]["port"] == 10352
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == {"app": "karmada-scheduler-estimator-member1", "cluster": "member1"}
    main = main_container("karmada-scheduler-estimator")
    assert "--kubeconfig=/etc/member1-kubeconfig" in main["command"]
    assert main["readinessProbe"]["tcpSocket"] == {"port": 10352}, "it listens there when it knows its member"


def test_the_pods_of_the_dashboard_hold_nothing_that_is_secret_and_only_read() -> None:
    way, service, _, deployment = ADDONS["karmada-dashboard"].host(SETTINGS)
    spec = deployment["spec"]["template"]["spec"]
    assert [volume for volume in spec["volumes"] if "secret" in volume or "projected" in volume] == []
    config = Kubeconfig.parse(way["data"]["karmada.config"]).resolve()
    assert config.server == "https://karmada-apiserver.karmada-system.svc.cluster.local:5443"
    assert config.ca.data == b"authority"
    assert not any((config.token, config.username, config.certificate, config.key, config.exec))
    assert not [word for word in main_container("karmada-dashboard")["command"] if "writes" in word]
    assert service["spec"]["sessionAffinity"] == "ClientIP", "a session is in the memory of one pod"


def test_the_dashboard_is_known_by_its_names_and_presents_the_certificate_it_is_given() -> None:
    settings = replace(SETTINGS, hosts=["fleet.example.com"], serving_secret="fleet-tls")
    command = main_container("karmada-dashboard", settings)["command"]
    names = [word.removeprefix("--host=") for word in command if word.startswith("--host=")]
    assert names[-2:] == ["karmada-dashboard.karmada-system.svc.cluster.local", "fleet.example.com"]
    assert "--tls-cert-file=/etc/karmada/serving/tls.crt" in command
    volumes = workload("karmada-dashboard", settings)["spec"]["template"]["spec"]["volumes"]
    assert [volume["secret"]["secretName"] for volume in volumes if "secret" in volume] == ["fleet-tls"]
    assert privileges(ADDONS["karmada-dashboard"].host(settings)) == []


@cases(
    ("karmada-dashboard", {}),
    ("karmada-descheduler", {}),
    ("karmada-scheduler-estimator", {}),
    ("karmada-search", {"v1alpha1.search.karmada.io": (2000, 10)}),
    (
        "karmada-metrics-adapter",
        {
            "v1beta1.metrics.k8s.io": (100, 200),
            "v1beta1.custom.metrics.k8s.io": (100, 200),
            "v1beta2.custom.metrics.k8s.io": (100, 200),
        },
    ),
)
def test_the_control_plane_is_led_to_what_it_serves(name: str, apis: dict[str, tuple[int, int]]) -> None:
    objects = ADDONS[name].control_plane(SETTINGS)
    found = {
        obj["metadata"]["name"]: (obj["spec"]["groupPriorityMinimum"], obj["spec"]["versionPriority"])
        for obj in objects
        if obj["kind"] == "APIService"
    }
    assert found == apis
    services = [obj for obj in objects if obj["kind"] == "Service"]
    assert [service["spec"]["externalName"] for service in services] == (
        [f"{name}.karmada-system.svc.cluster.local"] if apis else []
    )
    bundles = {obj["spec"]["caBundle"] for obj in objects if obj["kind"] == "APIService"}
    assert bundles <= {"YXV0aG9yaXR5"}

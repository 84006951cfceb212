"""The objects of an installation in the host cluster."""

from __future__ import annotations

from typing import Any

from karmada.install.host import all_stages, foundation
from karmada.install.images import IMAGE
from karmada.install.options import options_from
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.restricted import privileges

SEPARATE: dict[str, Any] = {"all-in-one": False}
ON_VOLUMES: dict[str, Any] = {**SEPARATE, "etcd-storage-mode": "PVC", "storage-classes-name": "standard"}
SEPARATE_SQLITE: dict[str, Any] = {**SEPARATE, "store": "sqlite"}
EXTERNAL: dict[str, Any] = {"external-etcd-servers": "https://e1:2379,https://e2:2379"}


def objects(given: dict[str, Any]) -> list[Obj]:
    options = options_from(given)
    return [*foundation(options, []), *(obj for stage in all_stages(options) for obj in stage.objects)]


def workload(given: dict[str, Any], name: str) -> Obj:
    (found,) = (stage.workload for stage in all_stages(options_from(given)) if stage.name == name)
    return found


def main_container(given: dict[str, Any], name: str) -> Obj:
    found: Obj = workload(given, name)["spec"]["template"]["spec"]["containers"][0]
    return found


@cases({}, ON_VOLUMES, SEPARATE_SQLITE, EXTERNAL, {"store-volume": "emptyDir"})
def test_pods_keep_to_the_restricted_profile(given: dict[str, Any]) -> None:
    assert privileges(objects(given)) == []


@cases((SEPARATE, "StatefulSet/etcd"), ({"store-volume": "hostPath"}, "Deployment/karmada-apiserver"))
def test_a_store_in_a_folder_of_its_node_is_all_that_breaks_the_profile(given: dict[str, Any], name: str) -> None:
    found = privileges(objects(given))
    assert {text.partition(":")[0] for text in found} == {name}
    assert any("hostPath" in text for text in found)


@cases(
    ({}, ["karmada-apiserver"]),
    (
        SEPARATE,
        [
            "etcd",
            "karmada-apiserver",
            "karmada-aggregated-apiserver",
            "kube-controller-manager",
            "karmada-scheduler",
            "karmada-controller-manager",
            "karmada-webhook",
        ],
    ),
    (
        EXTERNAL,
        [
            "karmada-apiserver",
            "karmada-aggregated-apiserver",
            "kube-controller-manager",
            "karmada-scheduler",
            "karmada-controller-manager",
            "karmada-webhook",
        ],
    ),
)
def test_components_are_applied_in_the_order_of_an_upgrade(given: dict[str, Any], names: list[str]) -> None:
    stages = all_stages(options_from(given))
    assert [stage.name for stage in stages] == names
    assert [stage.workload["metadata"]["name"] for stage in stages] == names


@cases({}, ON_VOLUMES, SEPARATE_SQLITE, EXTERNAL)
def test_everything_is_labelled_for_deinit_and_in_the_namespace(given: dict[str, Any]) -> None:
    for obj in objects({**given, "namespace": "here"}):
        metadata = obj["metadata"]
        if obj["kind"] == "Namespace":
            assert metadata["name"] == "here"
            continue
        assert metadata["namespace"] == "here"
        assert "karmada.io/bootstrapping" in metadata["labels"]


def test_every_component_has_an_account_of_its_own_without_a_token() -> None:
    for stage in all_stages(options_from(SEPARATE)):
        account = stage.objects[0]
        pod = stage.workload["spec"]["template"]["spec"]
        assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", stage.name)
        assert pod["serviceAccountName"] == stage.name
        assert pod["automountServiceAccountToken"] is False


def test_the_all_in_one_runs_karmada_with_its_state_on_a_claim() -> None:
    main = main_container({}, "karmada-apiserver")
    assert main["image"] == IMAGE
    assert main["command"][0] == "/bin/karmada"
    deployment = workload({}, "karmada-apiserver")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    claims = [obj for obj in objects({"storage-classes-name": "fast"}) if obj["kind"] == "PersistentVolumeClaim"]
    assert [(claim["metadata"]["name"], claim["spec"]["storageClassName"]) for claim in claims] == [
        ("karmada-apiserver-state", "fast")
    ]


def test_servers_reach_every_member_of_etcd_by_name() -> None:
    given = {**ON_VOLUMES, "etcd-replicas": 2, "host-cluster-domain": "d"}
    servers = "https://etcd-0.etcd.karmada-system.svc.d:2379,https://etcd-1.etcd.karmada-system.svc.d:2379"
    for name in ("karmada-apiserver", "karmada-aggregated-apiserver"):
        assert f"--etcd-servers={servers}" in main_container(given, name)["command"]
    peers = "etcd-0=http://etcd-0.etcd.karmada-system.svc.d:2380,etcd-1=http://etcd-1.etcd.karmada-system.svc.d:2380"
    assert f"--initial-cluster={peers}" in main_container(given, "etcd")["command"]


def test_an_external_etcd_is_reached_with_the_files_that_were_given() -> None:
    given = {**EXTERNAL, "external-etcd-ca-cert-path": "ca", "external-etcd-key-prefix": "/p"}
    flags = [flag for flag in main_container(given, "karmada-apiserver")["command"] if flag.startswith("--etcd")]
    assert flags == [
        "--etcd-cafile=/etc/karmada/pki/etcd-ca.crt",
        "--etcd-servers=https://e1:2379,https://e2:2379",
        "--etcd-prefix=/p",
    ]


def test_extra_args_and_images_reach_their_component() -> None:
    given = {
        **SEPARATE,
        "karmada-scheduler-extra-args": ("--v=6",),
        "karmada-scheduler-image": "me/s:1",
        "image-pull-secrets": ("a,b",),
        "karmada-scheduler-priority-class": "high",
        "karmada-scheduler-replicas": 2,
    }
    pod = workload(given, "karmada-scheduler")["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "me/s:1"
    assert pod["containers"][0]["command"][-1] == "--v=6"
    assert pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert pod["priorityClassName"] == "high"
    assert workload(given, "karmada-scheduler")["spec"]["replicas"] == 2


def test_the_flags_of_a_run_are_kept_in_the_cluster_for_the_next() -> None:
    (saved,) = (obj for obj in objects({"port": 31000, "karmada-data": "/x"}) if obj["kind"] == "ConfigMap")
    assert saved["data"] == {"flags.json": '{\n  "port": 31000\n}'}


@cases(("", {"karmada.io/etcd": ""}), ("a=b,c", {"a": "b", "c": ""}), (" a=b ,", {"a": "b"}))
def test_a_folder_of_a_node_is_bound_to_the_nodes_that_have_it(labels: str, selector: dict[str, str]) -> None:
    pod = workload({**SEPARATE, "etcd-node-selector-labels": labels}, "etcd")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == selector


def test_pods_get_only_the_keys_that_their_command_line_names() -> None:
    given = {**ON_VOLUMES, "karmada-webhook-extra-args": ("--client-ca-file=/etc/karmada/pki/ca.crt",)}
    found = {}
    for stage in all_stages(options_from(given)):
        volumes = stage.workload["spec"]["template"]["spec"]["volumes"]
        items = [item["key"] for volume in volumes for item in volume.get("secret", {}).get("items", ())]
        found[stage.name] = [key for key in items if key.endswith(".key")]
    assert found == {
        "etcd": ["etcd-server.key"],
        "karmada-apiserver": ["apiserver.key", "etcd-client.key", "front-proxy-client.key", "karmada.key"],
        "karmada-aggregated-apiserver": ["etcd-client.key", "karmada.key"],
        "kube-controller-manager": ["ca.key", "karmada.key"],
        "karmada-scheduler": ["karmada.key"],
        "karmada-controller-manager": [],
        "karmada-webhook": [],
    }

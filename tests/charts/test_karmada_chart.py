"""The chart of this repository, linted and rendered by helm over a table of values."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada.install import components
from karmada.install.all_in_one import all_in_one
from karmada.install.etcd import etcd_stateful_set
from karmada.install.extra_args import key_of
from karmada.install.images import IMAGE
from karmada.install.options import Options, options_from
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import versions
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from karmada.version import VERSION
from tests.support.cases import cases
from tests.support.restricted import privileges
from tests.support.running import api_server

CHART = Path(__file__).parents[2] / "charts" / "karmada"
HELM = str(Path(sys.executable).with_name("helm"))
NAMESPACE = "karmada-system"
PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KUBECONFIG = {"server": "https://192.0.2.1:5443", "caCrt": PEM, "crt": PEM, "key": PEM}
ESTIMATOR = {"memberClusters": [{"clusterName": "member1", "kubeconfig": KUBECONFIG}]}
ON_VOLUMES = {"etcd": {"internal": {"storageType": "pvc", "replicaCount": 3, "pvc": {"storageClass": "fast"}}}}
CUSTOM = dict.fromkeys(("caCrt", "caKey", "crt", "key", "frontProxyCaCrt", "frontProxyCrt", "frontProxyKey"), PEM)
EXTERNAL = {
    "mode": "external",
    "external": {"servers": "https://e1:2379", "certs": {"caCrt": PEM, "crt": PEM, "key": PEM}},
}
OIDC = {"issuerUrl": "https://id.example.com", "clientId": "karmada", "groupsClaim": "groups"}
SEPARATE = {"allInOne": {"enabled": False}}
VALUES: dict[str, Obj] = {
    "defaults": {},
    "separate": SEPARATE,
    "separate-on-volumes": ON_VOLUMES,
    "separate-external-etcd": {"etcd": EXTERNAL, "apiServer": {"replicaCount": 3}},
    "separate-custom-certificates": {**ON_VOLUMES, "certs": {"mode": "custom", "custom": CUSTOM}},
    "all-in-one": {"allInOne": {"enabled": True}},
    "all-in-one-on-its-node": {"allInOne": {"enabled": True, "storageType": "hostPath"}},
    "all-in-one-external-etcd": {"allInOne": {"enabled": True}, "etcd": EXTERNAL, "apiServer": {"replicaCount": 2}},
    "everything": {
        **ON_VOLUMES,
        "components": ["descheduler", "schedulerEstimator", "search", "dashboard"],
        "schedulerEstimator": ESTIMATOR,
        "metricsAdapter": {"enabled": True},
        "global": {"imageRegistry": "r.example.com", "imagePullSecrets": ["pull"], "commonLabels": {"team": "a"}},
        "podDisruptionBudget": {"minAvailable": 1},
        "apiServer": {
            "serviceType": "NodePort",
            "nodePort": 32443,
            "oidc": OIDC,
            "encryptionAtRest": {"enabled": True, "secretName": "keys"},
        },
        "scheduler": {"enableSchedulerEstimator": True, "featureGates": {"WorkloadAffinity": True}},
        "controllerManager": {"controllers": "*,-unifiedAuth", "extraCommandArgs": {"cluster-monitor-period": "9s"}},
    },
    "agent": {"installMode": "agent", "agent": {"clusterName": "member1", "kubeconfig": KUBECONFIG}},
    "component": {
        "installMode": "component",
        "components": ["dashboard", "descheduler", "schedulerEstimator"],
        "schedulerEstimator": ESTIMATOR,
    },
}  # fmt: skip
ON_NODES = {"separate": "StatefulSet/etcd", "all-in-one-on-its-node": "Deployment/karmada-apiserver"}
"""Value sets that keep the state in a folder of a node, which the restricted profile forbids, and who does so."""
SECTIONS = {
    "apiServer": "karmada-apiserver",
    "aggregatedApiServer": "karmada-aggregated-apiserver",
    "kubeControllerManager": "karmada-kube-controller-manager",
    "controllerManager": "karmada-controller-manager",
    "scheduler": "karmada-scheduler",
    "webhook": "karmada-webhook",
    "metricsAdapter": "karmada-metrics-adapter",
    "descheduler": "karmada-descheduler",
    "search": "karmada-search",
    "dashboard": "karmada-dashboard",
}


def helm(*arguments: str, values: str) -> subprocess.CompletedProcess[str]:
    command = [HELM, *arguments, "-n", NAMESPACE, "-f", "-"]
    return subprocess.run(command, input=values, capture_output=True, text=True, check=False)


@cache
def _rendered(values: str, release: str) -> tuple[Obj, ...]:
    done = helm("template", release, str(CHART), values=values)
    assert done.returncode == 0, done.stderr
    return tuple(obj for obj in yaml.safe_load_all(done.stdout) if obj)


def rendered(values: Obj, release: str = "karmada") -> tuple[Obj, ...]:
    return _rendered(json.dumps(values), release)


def shown(obj: Obj) -> str:
    return f"{obj['kind']}/{obj['metadata']['name']}"


def workload(values: Obj, name: str) -> Obj:
    [found] = [obj for obj in rendered(values) if shown(obj) == name]
    return found


def pod(values: Obj, name: str) -> Obj:
    found: Obj = workload(values, name)["spec"]["template"]["spec"]
    return found


def refusal(values: Obj) -> str:
    done = helm("template", "karmada", str(CHART), values=json.dumps(values))
    assert done.returncode != 0, "these values were accepted"
    return done.stderr


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_finds_nothing_to_complain_about(values: Obj) -> None:
    done = helm("lint", "--strict", str(CHART), values=json.dumps(values))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", versions()[-13:])
async def test_every_object_is_accepted_by_every_kubernetes_version(version: str, tmp_path: Path) -> None:
    """Strictly: no field that is unknown, none twice."""
    config = ServerConfig(data_dir=tmp_path, storage="memory://", port=0, kubernetes_version=version, controllers=False)
    server = ApiServer(config)
    await server.start()
    client = server.client(user_agent="helm")
    try:
        await client.create(GVK("", "v1", "Namespace"), {"metadata": {"name": NAMESPACE}})
        for obj in {json.dumps(obj): obj for values in VALUES.values() for obj in rendered(values)}.values():
            await client.create(GVK.parse(obj["apiVersion"], obj["kind"]), obj, dry_run=True, field_validation="Strict")
    finally:
        await server.stop()


@pytest.mark.parametrize("name", VALUES)
def test_pods_keep_to_the_restricted_profile(name: str) -> None:
    found = privileges(rendered(VALUES[name]))
    assert {text.partition(":")[0] for text in found} == ({ON_NODES[name]} if name in ON_NODES else set())


@pytest.mark.parametrize("name", VALUES)
def test_rights_are_those_of_jobs_for_three_secrets_and_of_an_agent(name: str) -> None:
    roles = [obj for obj in rendered(VALUES[name]) if obj["kind"] in ("Role", "ClusterRole")]
    if name == "agent":
        assert [shown(role) for role in roles] == ["ClusterRole/karmada-agent"]
        return
    assert all(role["kind"] == "Role" for role in roles)
    for rule in (rule for role in roles for rule in role["rules"]):
        assert rule["resources"] == ["secrets"]
        names = {"karmada-cert", "karmada-webhook-cert", "karmada-kubeconfig"}
        assert rule["verbs"] == ["create"] or set(rule["resourceNames"]) == names


def test_the_default_image_is_that_of_init() -> None:
    assert pod(SEPARATE, "Deployment/karmada-scheduler")["containers"][0]["image"] == IMAGE
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, f"v{VERSION}")


def _init(**given: Any) -> Options:
    return options_from({name.replace("_", "-"): value for name, value in given.items()})


@cases(
    ({"allInOne": {"enabled": True}}, "Deployment/karmada-apiserver", all_in_one(_init())),
    *(
        (VALUES["separate"], f"Deployment/{name}", make(_init(all_in_one=False)))
        for name, make in {
            "karmada-apiserver": components.api_server,
            "karmada-aggregated-apiserver": components.aggregated,
            "karmada-kube-controller-manager": components.kube_controller_manager,
            "karmada-scheduler": components.scheduler,
            "karmada-controller-manager": components.controller_manager,
            "karmada-webhook": components.webhook,
        }.items()
    ),
    (VALUES["separate"], "StatefulSet/etcd", etcd_stateful_set(_init(all_in_one=False))),
)
def test_components_have_the_command_lines_ports_and_probes_of_init(values: Obj, name: str, made: Obj) -> None:
    """The chart may add flags; what `init` sets is the same, but for a switch that the values have."""
    [ours], [theirs] = pod(values, name)["containers"], made["spec"]["template"]["spec"]["containers"]
    mine = {key_of(flag): flag for flag in ours["command"]}
    init = {key_of(flag): flag for flag in theirs["command"] if key_of(flag) != "--enable-scheduler-estimator"}
    assert {key: mine.get(key) for key in init} == init
    assert ours["ports"] == theirs["ports"]
    for probe in ("livenessProbe", "readinessProbe"):
        assert ours.get(probe) == theirs.get(probe)
    assert certificate_files(pod(values, name)) == certificate_files(made["spec"]["template"]["spec"])


@cases(
    ("everything", "controller-manager"),
    ("everything", "scheduler"),
    ("everything", "descheduler"),
    ("agent", "agent"),
)
def test_what_hung_a_program_is_in_a_volume_that_outlives_its_restart(values: str, name: str) -> None:
    spec = pod(VALUES[values], f"Deployment/karmada-{name}")
    (container,) = spec["containers"]
    assert "--quarantine-file=/tmp/quarantine.json" in container["command"]
    assert {"name": "scratch", "mountPath": "/tmp"} in container["volumeMounts"]
    assert {"name": "scratch", "emptyDir": {}} in spec["volumes"]
    assert spec.get("restartPolicy", "Always") == "Always"


def certificate_files(spec: Obj) -> set[str]:
    """What a pod has of the certificates; not an authority's key, unless it signs."""
    [name] = {m["name"] for m in spec["containers"][0]["volumeMounts"] if m["mountPath"] == "/etc/karmada/pki"} or {""}
    return {item["key"] for volume in spec["volumes"] if volume["name"] == name for item in volume["secret"]["items"]}


def test_the_key_of_an_authority_of_the_user_is_there_once_and_every_file_that_pods_name_is() -> None:
    values = VALUES["separate-custom-certificates"]
    files = set(workload(values, "Secret/karmada-cert")["data"])
    assert {file for file in files if file.endswith("ca.key")} == {"ca.key"}
    pods = [obj["spec"]["template"]["spec"] for obj in rendered(values) if obj["kind"] in ("Deployment", "StatefulSet")]
    assert {file for spec in pods if spec["volumes"] for file in certificate_files(spec)} <= files


@pytest.mark.parametrize("section", SECTIONS)
def test_every_component_has_the_usual_settings(section: str) -> None:
    values: Obj = {
        "labels": {"a": "b"},
        "podLabels": {"c": "d"},
        "podAnnotations": {"e": "f"},
        "replicaCount": 2,
        "logVerbosity": 5,
        "image": {"registry": "x.example.com", "repository": "own/name", "tag": "t", "pullPolicy": "Always"},
        "resources": {"limits": {"memory": "1Gi"}},
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {}},
        "tolerations": [{"operator": "Exists"}],
        "strategy": {"type": "Recreate"},
        "priorityClassName": "high",
        "podDisruptionBudget": {"maxUnavailable": 1},
        "extraCommandArgs": {"feature": "on"},
    }
    components = ["descheduler", "search", "dashboard"]
    all_of_them: Obj = {**SEPARATE, "components": components, "metricsAdapter": {"enabled": True}}
    given = {**all_of_them, section: {**all_of_them.get(section, {}), **values}}
    found = workload(given, f"Deployment/{SECTIONS[section]}")
    template = found["spec"]["template"]
    [container] = template["spec"]["containers"]
    assert found["metadata"]["labels"]["a"] == "b"
    assert (template["metadata"]["labels"]["c"], template["metadata"]["annotations"]) == ("d", {"e": "f"})
    assert (found["spec"]["replicas"], found["spec"]["strategy"]) == (2, {"type": "Recreate"})
    assert (container["image"], container["imagePullPolicy"]) == ("x.example.com/own/name:t", "Always")
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    assert container["command"][-2:] == ["--feature=on", "--v=5"]
    for name in ("nodeSelector", "affinity", "tolerations", "priorityClassName"):
        assert template["spec"][name] == values[name]
    budget = workload(given, f"PodDisruptionBudget/{SECTIONS[section]}")
    assert budget["spec"]["maxUnavailable"] == 1


@cases(
    ({}, False),
    ({"apiServer": {"serviceType": "NodePort", "resources": {"limits": {"cpu": "1"}}}}, False),
    (
        {
            "controllerManager": {"featureGates": {"Failover": True}},
            "scheduler": {"enableSchedulerEstimator": True},
        },
        False,
    ),
    ({"scheduler": {"replicaCount": 2}}, True),
    ({"webhook": {"resources": {"limits": {"cpu": "1"}}}}, True),
    ({"kubeControllerManager": {"image": {"repository": "mirror/kube-controller-manager"}}}, True),
    ({"kubeControllerManager": {"controllers": "namespace"}}, True),
    ({"aggregatedApiServer": {"tolerations": [{"operator": "Exists"}]}}, True),
    ({"scheduler": {"nodeSelector": {"disk": "ssd"}}}, True),
    ({"scheduler": {"nodeSelector": {}, "replicaCount": 1, "extraCommandArgs": {"v": "4"}}}, False),
    ({"webhook": {"extraCommandArgs": {"a": "b"}}}, True),
    ({"etcd": {"internal": {"resources": {"limits": {"cpu": "1"}}}}}, True),
    ({"etcd": {"internal": {"image": {"tag": "3.6.7-0"}}}}, True),
    ({"etcd": {"internal": {"storageType": "pvc"}}}, True),
    ({"etcd": EXTERNAL}, True),
    ({"components": ["search"]}, True),
    ({"components": ["dashboard"]}, False),
    ({"metricsAdapter": {"enabled": True}}, True),
    ({"apiServer": {"replicaCount": 2}, "etcd": EXTERNAL}, True),
    ({"allInOne": {"enabled": False}}, True),
    ({"allInOne": {"enabled": True}, "scheduler": {"replicaCount": 2}}, False),
)
def test_components_are_separate_when_values_are_about_them(values: Obj, separate: bool) -> None:
    names = {shown(obj) for obj in rendered(values)}
    assert ("Deployment/karmada-scheduler" in names) is separate
    [container] = pod(values, "Deployment/karmada-apiserver")["containers"]
    assert container["command"][0] == ("kube-apiserver" if separate else "/bin/karmada")


async def test_values_without_effect_in_one_deployment_are_named(tmp_path: Path) -> None:
    """In what helm prints, for which it needs an API server."""
    values = {"allInOne": {"enabled": True}, "scheduler": {"replicaCount": 2, "nodeSelector": {"disk": "ssd"}}}
    async with api_server(tmp_path, controllers=False) as server:
        words = ("install", "karmada", str(CHART), "--dry-run=client", "--kubeconfig", str(server.kubeconfig))
        done = await asyncio.to_thread(helm, *words, values=json.dumps(values))
    assert "Without effect in it: scheduler.nodeSelector, scheduler.replicaCount.\n" in done.stdout, done.stderr


def test_a_dashboard_holds_no_key_unless_it_is_given_one_and_only_reads_unless_it_may_write() -> None:
    values: Obj = {"components": ["dashboard"]}
    name = "Deployment/karmada-dashboard"
    files = [
        (one["secret"]["secretName"], one["secret"]["items"]) for one in pod(values, name)["volumes"] if "secret" in one
    ]
    assert files == [("karmada-cert", [{"key": "ca.crt", "path": "ca.crt"}])]
    assert "--enable-writes" not in pod(values, name)["containers"][0]["command"]
    assert workload(values, "Service/karmada-dashboard")["spec"]["sessionAffinity"] == "ClientIP"
    way = yaml.safe_load(workload(values, "ConfigMap/karmada-dashboard")["data"]["kubeconfig"])
    assert way["clusters"][0]["cluster"]["server"] == "https://karmada-apiserver.karmada-system.svc.cluster.local:5443"
    assert "users" not in way
    given: Obj = {**values, "dashboard": {"tlsSecret": "fleet-tls", "hosts": ["fleet.example.com"], "writes": True}}
    command = pod(given, name)["containers"][0]["command"]
    assert {"--host=fleet.example.com", "--tls-cert-file=/etc/karmada/serving/tls.crt", "--enable-writes"} <= set(
        command
    )
    alone = yaml.safe_load(workload(VALUES["component"], "ConfigMap/karmada-dashboard")["data"]["kubeconfig"])
    assert alone == way, "beside a control plane of the same namespace"
    secrets = [one["secret"]["secretName"] for one in pod(given, name)["volumes"] if "secret" in one]
    assert secrets == ["karmada-cert", "fleet-tls"]


def test_global_settings_are_of_every_object() -> None:
    for obj in rendered(VALUES["everything"]):
        assert obj["metadata"]["labels"]["team"] == "a", shown(obj)
        spec = (obj.get("spec") or {}).get("template", {}).get("spec")
        if spec:
            assert spec["imagePullSecrets"] == [{"name": "pull"}]
            assert spec["containers"][0]["image"].startswith("r.example.com/"), shown(obj)


@pytest.mark.parametrize("name", VALUES)
def test_everything_is_found_by_the_label_of_its_release(name: str) -> None:
    """Of hooks, too: it is the way to remove what they leave when their jobs have no image to run."""
    found = {shown(obj): obj["metadata"]["labels"].get("app.kubernetes.io/instance") for obj in rendered(VALUES[name])}
    assert set(found.values()) == {"karmada"}, found


def test_names_follow_the_release_and_those_of_etcd_do_not() -> None:
    found = {
        shown(obj) for obj in rendered(SEPARATE, "blue") if obj["kind"] in ("Deployment", "StatefulSet", "Service")
    }
    assert {"Deployment/blue-apiserver", "Service/blue-webhook", "StatefulSet/etcd"} <= found
    assert not [name for name in found if "karmada-" in name]


def test_a_published_guide_with_images_and_hosts_of_its_own_renders_as_it_shows() -> None:
    parts = {
        "search": "karmada-search",
        "descheduler": "karmada-descheduler",
        "schedulerEstimator": "karmada-scheduler-estimator",
        "agent": "karmada-agent",
        "aggregatedApiServer": "karmada-aggregated-apiserver",
        "webhook": "karmada-webhook",
        "controllerManager": "karmada-controller-manager",
        "scheduler": "karmada-scheduler",
        "kubeControllerManager": "kube-controller-manager",
        "apiServer": "kube-apiserver",
    }
    values: Obj = {section: {"image": {"repository": f"karmada/{name}"}} for section, name in parts.items()}
    values["etcd"] = {"internal": {"image": {"repository": "karmada/etcd"}}}
    values["certs"] = {
        "auto": {"hosts": ["*.etcd.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}", "10.0.0.7"]}
    }
    found = {shown(obj) for obj in rendered(values) if obj["kind"] in ("Deployment", "StatefulSet")}
    assert found == {
        "StatefulSet/etcd", "Deployment/karmada-aggregated-apiserver", "Deployment/karmada-apiserver",
        "Deployment/karmada-controller-manager", "Deployment/karmada-kube-controller-manager",
        "Deployment/karmada-scheduler", "Deployment/karmada-webhook",
    }  # fmt: skip
    command = pod(values, "Job/karmada-pre-job")["containers"][0]["command"]
    assert command[-2:] == ["--host=*.etcd.karmada-system.svc.cluster.local", "--host=10.0.0.7"]
    agent = rendered({**VALUES["agent"], "agent": {**VALUES["agent"]["agent"], **values["agent"]}}, "karmada-agent")
    assert "Deployment/karmada-agent" in {shown(obj) for obj in agent}


@cases(
    ({"installMode": "hots"}, 'installMode must be one of the following: "host", "agent", "component"'),
    ({"replicas": 3}, "Additional property replicas is not allowed"),
    ({"scheduler": {"replicas": 3}}, "scheduler: Additional property replicas is not allowed"),
    ({"apiServer": {"replicaCount": 0}}, "apiServer.replicaCount: Must be greater than or equal to 1"),
    ({"components": ["all"]}, 'components.0 must be one of the following: "schedulerEstimator", "descheduler"'),
    ({"installMode": "component", "components": ["search"]}, "components: search registers an API"),
    ({"allInOne": {"enabled": True}, "components": ["search"]}, "components: search is built into"),
    ({"allInOne": {"enabled": True}, "metricsAdapter": {"enabled": True}}, "metricsAdapter.enabled: it is built"),
    ({"agent": {"clusterName": "Bad_Name"}}, "agent.clusterName: Does not match pattern"),
    ({"certs": {"auto": {"expiry": "5 years"}}}, "certs.auto.expiry: Does not match pattern"),
    ({"certs": {"custom": {"crt": "LS0tLS1C"}}}, "certs.custom.crt: Does not match pattern '^$|-----BEGIN'"),
    ({"certs": {"mode": "custom"}}, "certs.custom.caCrt: is required with certs.mode custom (PEM, not base64)"),
    ({"installMode": "agent"}, "agent.clusterName: is required with installMode agent"),
    (
        {"installMode": "agent", "agent": {"clusterName": "a"}},
        "agent.kubeconfig.server: is required with installMode agent",
    ),
    ({"etcd": {"mode": "external"}}, "etcd.external.servers: is required with etcd.mode external"),
    ({"etcd": {"external": {"servers": "https://10.0.0.1:2379"}}}, "etcd.external.servers: has no effect"),
    ({**SEPARATE, "etcd": {"internal": {"replicaCount": 3}}}, "set etcd.internal.storageType to pvc"),
    ({"installMode": "component"}, "components: is empty; with installMode component name at least one"),
    ({"components": ["schedulerEstimator"]}, "schedulerEstimator.memberClusters: is empty"),
    ({"allInOne": {"enabled": True}, "apiServer": {"replicaCount": 2}}, "SQLite, which one replica can use"),
    ({"apiServer": {"encryptionAtRest": {"enabled": True}}}, "apiServer.encryptionAtRest.secretName: is required"),
)  # fmt: skip
def test_wrong_values_are_refused_by_name(values: Obj, text: str) -> None:
    assert text in refusal(values)

"""The CRDs of all kinds: names, columns, defaults, and that a server takes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.api.crds import CONVERT_URL, Webhook, all_kinds, builtin_crds, crd_manifests, crd_of
from karmada.api.kind import KindInfo, Resource, kind
from karmada.api.policy import PropagationPolicy
from karmada.api.schema import kind_schema
from karmada.api.work import ResourceBinding
from karmada.cli.commands.crds import crds as crds_command
from karmada.kube.kinds import customresourcedefinition
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from karmada.kube.schema.defaulting import apply_defaults
from karmada.kube.schema.structural import compile_schema
from karmada.kube.schema.yamlio import load_all

KINDS = """
apps.karmada.io workloadrebalancers WorkloadRebalancer Cluster - - v1alpha1 status
autoscaling.karmada.io cronfederatedhpas CronFederatedHPA Namespaced cronfhpa karmada-io v1alpha1 status
autoscaling.karmada.io federatedhpas FederatedHPA Namespaced fhpa karmada-io v1alpha1 status
cluster.karmada.io clusters Cluster Cluster - - v1alpha1 status
config.karmada.io replicaschedulingpolicies ReplicaSchedulingPolicy Cluster - karmada-io v1alpha1 -
config.karmada.io resourceinterpretercustomizations ResourceInterpreterCustomization Cluster ric karmada-io v1alpha1 -
config.karmada.io resourceinterpreterwebhookconfigurations ResourceInterpreterWebhookConfiguration Cluster - karmada-io v1alpha1 -
multicluster.x-k8s.io serviceexports ServiceExport Namespaced svcex - v1alpha1 status
multicluster.x-k8s.io serviceimports ServiceImport Namespaced svcim - v1alpha1 status
networking.karmada.io multiclusteringresses MultiClusterIngress Namespaced mci karmada-io v1alpha1 status
networking.karmada.io multiclusterservices MultiClusterService Namespaced mcs karmada-io v1alpha1 status
policy.karmada.io clusteroverridepolicies ClusterOverridePolicy Cluster cop karmada-io v1alpha1 -
policy.karmada.io clusterpropagationpolicies ClusterPropagationPolicy Cluster cpp karmada-io v1alpha1 -
policy.karmada.io clustertaintpolicies ClusterTaintPolicy Cluster - - v1alpha1 -
policy.karmada.io federatedresourcequotas FederatedResourceQuota Namespaced - karmada-io v1alpha1 status
policy.karmada.io overridepolicies OverridePolicy Namespaced op karmada-io v1alpha1 -
policy.karmada.io propagationpolicies PropagationPolicy Namespaced pp karmada-io v1alpha1 -
policy.karmada.io replicaschedulingpolicies ReplicaSchedulingPolicy Namespaced rsp karmada-io v1alpha1 -
remedy.karmada.io remedies Remedy Cluster - karmada-io v1alpha1 -
search.karmada.io resourceregistries ResourceRegistry Cluster - - v1alpha1 status
work.karmada.io clusterresourcebindings ClusterResourceBinding Cluster crb karmada-io v1alpha1,v1alpha2 status
work.karmada.io resourcebindings ResourceBinding Namespaced rb karmada-io v1alpha1,v1alpha2 status
work.karmada.io works Work Namespaced wk karmada-io v1alpha1 status
"""  # noqa: E501
COLUMNS = {
    "propagationpolicies": ["CONFLICT-RESOLUTION", "PRIORITY", "AGE"],
    "clusterpropagationpolicies": ["CONFLICT-RESOLUTION", "PRIORITY", "AGE"],
    "federatedresourcequotas": ["OVERALL", "OVERALL_USED"],
    "resourcebindings": ["SCHEDULED", "FULLYAPPLIED", "AGE"],
    "clusterresourcebindings": ["SCHEDULED", "FULLYAPPLIED", "AGE"],
    "works": ["WORKLOAD-KIND", "APPLIED", "AGE"],
    "resourceinterpretercustomizations": ["TARGET-API-VERSION", "TARGET-KIND", "AGE"],
    "federatedhpas": ["REFERENCE-KIND", "REFERENCE-NAME", "MINPODS", "MAXPODS", "REPLICAS", "AGE"],
    "cronfederatedhpas": ["REFERENCE-KIND", "REFERENCE-NAME", "AGE"],
    "serviceexports": ["Age"],
    "serviceimports": ["Type", "IP", "Age"],
    "clusters": ["Version", "Mode", "Ready", "Age", "Zones", "Region", "Provider", "API-Endpoint", "Proxy-URL"],
}


def storage(crd: Obj) -> Obj:
    version: Obj = next(version for version in crd["spec"]["versions"] if version["storage"])
    return version


def row(crd: Obj) -> str:
    spec, names = crd["spec"], crd["spec"]["names"]
    return " ".join(
        [
            spec["group"],
            names["plural"],
            names["kind"],
            spec["scope"],
            ",".join(names.get("shortNames", ["-"])),
            ",".join(names.get("categories", ["-"])),
            ",".join(version["name"] for version in spec["versions"]),
            ",".join(storage(crd).get("subresources") or ["-"]),
        ]
    )


def test_every_kind_has_its_names_scope_versions_and_subresources() -> None:
    assert [row(crd) for crd in builtin_crds()] == sorted(KINDS.strip().splitlines(), key=lambda r: r.split()[1::-1])


def test_manifests_are_sorted_and_leave_out_what_has_its_own_api_server() -> None:
    names = [crd["metadata"]["name"] for crd in crd_manifests()]
    everything = [crd["metadata"]["name"] for crd in crd_manifests(everything=True)]
    assert names == sorted(names)
    assert set(everything) - set(names) == {"clusters.cluster.karmada.io", "resourceregistries.search.karmada.io"}
    assert everything == [crd["metadata"]["name"] for crd in builtin_crds()]


@pytest.mark.parametrize("crd", builtin_crds(), ids=lambda crd: crd["metadata"]["name"])
def test_an_api_server_takes_the_definition(crd: Obj) -> None:
    given = copy_json(crd)
    customresourcedefinition.default(given)
    given["status"] = {"storedVersions": [storage(given)["name"]]}
    assert [str(error) for error in customresourcedefinition.validate(given)] == []


@pytest.mark.parametrize("crd", builtin_crds(), ids=lambda crd: crd["metadata"]["name"])
def test_columns_are_those_that_users_know(crd: Obj) -> None:
    columns = [column["name"] for column in storage(crd).get("additionalPrinterColumns", ())]
    assert columns == COLUMNS.get(crd["spec"]["names"]["plural"], [])


def places(schema: Obj, path: str) -> Iterator[tuple[str, Obj]]:
    for name, child in schema.get("properties", {}).items():
        yield f"{path}.{name}", child
        yield from places(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from places(schema[keyword], path + "[]")


@pytest.mark.parametrize("info", all_kinds(), ids=lambda info: str(info.gvk))
def test_every_field_is_described(info: KindInfo) -> None:
    schema = kind_schema(info.type)
    assert schema["description"]
    assert [path for path, place in places(schema, info.gvk.kind) if not place.get("description")] == []


def defaults(cls: type[Resource], obj: Obj) -> Obj:
    apply_defaults(compile_schema(kind_schema(cls)), obj)
    return obj


def test_a_policy_gets_its_defaults() -> None:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
    given = {
        "resourceSelectors": selectors,
        "placement": {"replicaScheduling": {}},
        "failover": {"application": {"decisionConditions": {}}, "cluster": {}},
    }
    assert defaults(PropagationPolicy, {"spec": given})["spec"] == {
        "resourceSelectors": selectors,
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
        "failover": {
            "application": {"decisionConditions": {"tolerationSeconds": 300}, "purgeMode": "Gracefully"},
            "cluster": {"purgeMode": "Gracefully"},
        },
        "priority": 0,
        "preemption": "Never",
        "schedulerName": "default-scheduler",
        "conflictResolution": "Abort",
    }


def test_a_binding_gets_its_defaults_and_no_more() -> None:
    spec = {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "schedulePriority": {}}
    assert defaults(ResourceBinding, {"spec": spec})["spec"] == {
        **spec,
        "conflictResolution": "Abort",
        "schedulePriority": {"priority": 0},
    }


def test_what_has_no_default_stays_absent_in_the_schema_too() -> None:
    spec = kind_schema(PropagationPolicy)["properties"]["spec"]
    assert "default" not in spec["properties"]["propagateDeps"]
    assert spec["required"] == ["resourceSelectors"]


def test_only_bindings_are_converted_by_webhook() -> None:
    by_webhook = {
        crd["spec"]["names"]["kind"]: crd["spec"]["conversion"] for crd in builtin_crds() if "conversion" in crd["spec"]
    }
    expected = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": {"url": CONVERT_URL}, "conversionReviewVersions": ["v1"]},
    }
    assert by_webhook == {"ResourceBinding": expected, "ClusterResourceBinding": expected}
    assert storage(crd_of(ResourceBinding))["name"] == "v1alpha2"


def test_the_webhook_can_be_elsewhere_and_bring_its_authorities() -> None:
    conversion = crd_of(ResourceBinding, Webhook("https://here/convert", b"PEM"))["spec"]["conversion"]
    assert conversion["webhook"]["clientConfig"] == {"url": "https://here/convert", "caBundle": "UEVN"}


def test_the_same_type_is_one_schema_wherever_it_is_used() -> None:
    first, second = (
        kind_schema(info.type)["properties"]["spec"] for info in all_kinds() if info.short in {("pp",), ("cpp",)}
    )
    assert first["properties"] is second["properties"]


def test_a_kind_cannot_be_defined_twice() -> None:
    with pytest.raises(ValueError, match="is defined twice"):
        kind("policy.karmada.io/v1alpha1", plural="x", scope="Cluster", name="PropagationPolicy")(Resource)


def test_importing_a_group_makes_no_schema() -> None:
    probe = (
        "import sys, karmada.api.policy\n"
        "heavy = {'karmada.kube.schema.builtin', 'karmada.api.schema', 'karmada.kube.server', 'yaml', 'orjson'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_prints_all_definitions() -> None:
    result = CliRunner().invoke(crds_command, [])
    assert result.exit_code == 0
    assert load_all(result.stdout) == crd_manifests()


def test_the_command_writes_a_file_for_each(tmp_path: Path) -> None:
    authorities = tmp_path / "ca.crt"
    authorities.write_text("PEM")
    result = CliRunner().invoke(
        crds_command,
        ["--all", "-o", str(tmp_path / "out"), "--webhook-url", "https://w/convert", "--webhook-ca", str(authorities)],
    )
    assert result.exit_code == 0, result.output
    written = {path.name: load_all(path.read_bytes()) for path in (tmp_path / "out").iterdir()}
    expected = crd_manifests(everything=True, webhook=Webhook("https://w/convert", b"PEM"))
    assert written == {f"{crd['spec']['group']}_{crd['spec']['names']['plural']}.yaml": [crd] for crd in expected}


def test_the_command_says_why_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    result = CliRunner().invoke(crds_command, ["-o", str(tmp_path / "taken")])
    assert result.exit_code == 1
    assert "File exists" in result.output

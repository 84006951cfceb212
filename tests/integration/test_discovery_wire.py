"""Discovery, legacy and aggregated, as old and new clients read it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import yaml

from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.protobuf import decode
from karmada.kube.server.app import ApiServer
from karmada.kube.server.handlers.discovery import aggregated_forms
from tests.integration.streams import served
from tests.support.cases import cases
from tests.support.wire import Http

on_module_loop = pytest.mark.asyncio(loop_scope="module")

PROTOBUF = "application/vnd.kubernetes.protobuf"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
NEW_CLIENT = f"{V2},{V2BETA1},application/json"
OLDER_CLIENT = f"{V2BETA1},application/json"
NEWEST_CLIENT = f"{V2};profile=nopeer,{NEW_CLIENT}"
ALL = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


def crd(group: str, plural: str, kind: str, *versions: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": [plural[:2]], "categories": ["all"]},
            "versions": [
                {"name": v, "served": True, "storage": v == versions[0], "subresources": {"status": {}},
                 "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
                for v in versions
            ],
        },
    }  # fmt: skip


async def aggregated(http: Http, path: str = "/apis") -> list[Any]:
    answer = await http("GET", path, headers={"Accept": NEW_CLIENT})
    items: list[Any] = answer.json()["items"]
    return items


def by_name(items: list[Any]) -> dict[str, Any]:
    return {item["metadata"].get("name", ""): item for item in items}


# Legacy


async def test_the_legacy_root_of_the_core_group(http: Http, server: ApiServer) -> None:
    answer = await http("GET", "/api")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [
            {"clientCIDR": "0.0.0.0/0", "serverAddress": f"{server.advertised}:{server.port}"}
        ],
    }


@on_module_loop
async def test_the_legacy_list_of_groups(idle: Http) -> None:
    listed = (await idle("GET", "/apis")).json()
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    groups = {group["name"]: group for group in listed["groups"]}
    assert "" not in groups
    apps = {"groupVersion": "apps/v1", "version": "v1"}
    assert groups["apps"] == {"name": "apps", "versions": [apps], "preferredVersion": apps}
    assert [v["version"] for v in groups["autoscaling"]["versions"]] == ["v2", "v1"]
    assert groups["autoscaling"]["preferredVersion"]["version"] == "v2"
    assert (await idle("GET", "/apis/apps")).json() == {"kind": "APIGroup", "apiVersion": "v1", **groups["apps"]}


async def test_the_legacy_list_of_resources(http: Http) -> None:
    core = (await http("GET", "/api/v1")).json()
    assert {key: core[key] for key in core if key != "resources"} == {"kind": "APIResourceList", "groupVersion": "v1"}
    resources = {resource["name"]: resource for resource in core["resources"]}
    assert resources["configmaps"] == {
        "name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ALL,
        "shortNames": ["cm"], "storageVersionHash": "qFsyl6wFWjQ=",
    }  # fmt: skip
    assert resources["pods/log"] == {
        "name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"],
    }  # fmt: skip
    assert (resources["pods/eviction"]["group"], resources["pods/eviction"]["version"]) == ("policy", "v1")
    assert resources["pods/eviction"]["kind"] == "Eviction"
    token = resources["serviceaccounts/token"]
    assert (token["group"], token["version"], token["kind"]) == ("authentication.k8s.io", "v1", "TokenRequest")
    assert resources["namespaces"]["verbs"] == [verb for verb in ALL if verb != "deletecollection"]
    assert resources["bindings"]["verbs"] == ["create"]
    assert "storageVersionHash" not in resources["bindings"]
    assert resources["pods"]["categories"] == ["all"]
    apps = (await http("GET", "/apis/apps/v1")).json()
    assert (apps["kind"], apps["apiVersion"], apps["groupVersion"]) == ("APIResourceList", "v1", "apps/v1")
    scale = next(resource for resource in apps["resources"] if resource["name"] == "deployments/scale")
    assert scale == {
        "name": "deployments/scale", "singularName": "", "namespaced": True, "group": "autoscaling", "version": "v1",
        "kind": "Scale", "verbs": ["get", "patch", "update"],
    }  # fmt: skip
    status = next(resource for resource in apps["resources"] if resource["name"] == "deployments/status")
    assert "group" not in status


# Names and verbs, as a client resolves them

SERVED = {
    "": {
        "bindings": "", "componentstatuses": "cs", "configmaps": "cm", "endpoints": "ep", "events": "ev",
        "limitranges": "limits", "namespaces": "ns", "nodes": "no", "persistentvolumeclaims": "pvc",
        "persistentvolumes": "pv", "pods": "po", "podtemplates": "", "replicationcontrollers": "rc",
        "resourcequotas": "quota", "secrets": "", "serviceaccounts": "sa", "services": "svc",
    },
    "apps": {
        "controllerrevisions": "", "daemonsets": "ds", "deployments": "deploy", "replicasets": "rs",
        "statefulsets": "sts",
    },
    "batch": {"cronjobs": "cj", "jobs": ""},
    "autoscaling": {"horizontalpodautoscalers": "hpa"},
    "networking.k8s.io": {
        "ingresses": "ing", "networkpolicies": "netpol", "ingressclasses": "", "ipaddresses": "ip", "servicecidrs": "",
    },
    "discovery.k8s.io": {"endpointslices": ""},
    "policy": {"poddisruptionbudgets": "pdb"},
    "rbac.authorization.k8s.io": {"roles": "", "rolebindings": "", "clusterroles": "", "clusterrolebindings": ""},
    "storage.k8s.io": {
        "storageclasses": "sc", "csidrivers": "", "csinodes": "", "volumeattachments": "",
        "volumeattributesclasses": "vac", "csistoragecapacities": "",
    },
    "coordination.k8s.io": {"leases": ""},
    "events.k8s.io": {"events": "ev"},
    "scheduling.k8s.io": {"priorityclasses": "pc"},
    "node.k8s.io": {"runtimeclasses": ""},
    "admissionregistration.k8s.io": {
        "mutatingwebhookconfigurations": "", "validatingwebhookconfigurations": "", "validatingadmissionpolicies": "",
        "validatingadmissionpolicybindings": "",
    },
    "certificates.k8s.io": {"certificatesigningrequests": "csr"},
    "apiextensions.k8s.io": {"customresourcedefinitions": "crd crds"},
    "apiregistration.k8s.io": {"apiservices": ""},
    "authentication.k8s.io": {"tokenreviews": "", "selfsubjectreviews": ""},
    "authorization.k8s.io": {
        "subjectaccessreviews": "", "selfsubjectaccessreviews": "", "selfsubjectrulesreviews": "",
        "localsubjectaccessreviews": "",
    },
}  # fmt: skip


@on_module_loop
async def test_every_built_in_resource_is_there_with_its_short_names(idle: Http) -> None:
    items = by_name(await aggregated(idle, "/api") + await aggregated(idle))
    for group, resources in SERVED.items():
        for version in items[group]["versions"]:
            found = {resource["resource"]: resource for resource in version["resources"]}
            for name, short in resources.items():
                assert found[name].get("shortNames", []) == short.split(), name
                assert found[name]["singularResource"] == found[name]["responseKind"]["kind"].lower()


@on_module_loop
async def test_the_category_all_is_what_kubectl_get_all_shows(idle: Http) -> None:
    found = {
        resource["resource"]
        for group in await aggregated(idle, "/api") + await aggregated(idle)
        for version in group["versions"]
        for resource in version["resources"]
        if "all" in resource.get("categories", [])
    }
    assert found == {
        "pods", "replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "statefulsets",
        "cronjobs", "jobs", "horizontalpodautoscalers",
    }  # fmt: skip


# Aggregated


@on_module_loop
@cases(
    (NEW_CLIENT, V2, "v2"),
    (NEWEST_CLIENT, V2, "v2"),
    (f"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,{V2}", V2, "v2"),
)
async def test_both_roots_answer_the_first_form_that_is_known(
    header: str, media: str, version: str, idle: Http
) -> None:
    for path in ("/api", "/apis"):
        answer = await idle("GET", path, headers={"Accept": header})
        assert (answer.code, answer.headers["Content-Type"]) == (200, media)
        document = answer.json()
        assert document["kind"] == "APIGroupDiscoveryList"
        assert document["apiVersion"] == f"apidiscovery.k8s.io/{version}"
        assert document["metadata"] == {}
        tag = hashlib.sha512(answer.body).hexdigest().upper()
        assert answer.headers["ETag"] == f'"{tag}"'
        assert answer.headers["Vary"] == "Accept"
        assert answer.headers["Cache-Control"] == "public"
        again = await idle("GET", path, headers={"Accept": header, "If-None-Match": f'"{tag}"'})
        assert (again.code, again.body, again.headers["ETag"]) == (304, b"", f'"{tag}"')
        other = await idle("GET", path, headers={"Accept": header, "If-None-Match": '"0"'})
        assert other.code == 200


@on_module_loop
async def test_a_plain_accept_gets_the_legacy_form(idle: Http) -> None:
    for header in ("application/json", "*/*", f"application/json,{V2}"):
        assert (await idle("GET", "/apis", headers={"Accept": header})).json()["kind"] == "APIGroupList", header


@on_module_loop
async def test_the_beta_form_is_left_to_older_versions(idle: Http) -> None:
    answer = await idle("GET", "/apis", headers={"Accept": OLDER_CLIENT})
    assert (answer.code, answer.json()["kind"]) == (200, "APIGroupList")
    answer = await idle("GET", "/apis", headers={"Accept": V2BETA1})
    assert (answer.code, answer.json()["reason"]) == (406, "NotAcceptable")
    assert aggregated_forms("1.36") == ("v2",)
    assert aggregated_forms("1.30") == ("v2", "v2beta1")


@on_module_loop
async def test_legacy_documents_come_as_yaml_and_protobuf_too(idle: Http) -> None:
    for path in ("/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"):
        as_json = (await idle("GET", path)).json()
        as_yaml = await idle("GET", path, headers={"Accept": "application/yaml"})
        assert (as_yaml.headers["Content-Type"], yaml.safe_load(as_yaml.body)) == ("application/yaml", as_json)
        binary = await idle("GET", path, headers={"Accept": PROTOBUF})
        assert binary.headers["Content-Type"] == PROTOBUF
        decoded = decode(binary.body, Definitions.load())[2]
        assert decoded == {"apiVersion": "v1", **as_json}


async def test_an_aggregated_resource_has_all_a_client_needs(http: Http) -> None:
    apps = by_name(await aggregated(http))["apps"]
    [version] = apps["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    deployments = next(r for r in version["resources"] if r["resource"] == "deployments")
    own = {"group": "", "version": "", "kind": "Deployment"}
    changing = ["get", "patch", "update"]
    assert deployments == {
        "resource": "deployments", "responseKind": own, "scope": "Namespaced", "singularResource": "deployment",
        "shortNames": ["deploy"], "categories": ["all"], "verbs": ALL,
        "subresources": [
            {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
             "verbs": changing},
            {"subresource": "status", "responseKind": own, "verbs": changing},
        ],
    }  # fmt: skip
    [core] = await aggregated(http, "/api")
    assert not core["metadata"].get("name")
    assert core["versions"][0]["version"] == "v1"


@on_module_loop
async def test_no_entry_lacks_its_kind_or_scope(idle: Http) -> None:
    for group in await aggregated(idle, "/api") + await aggregated(idle):
        for version in group["versions"]:
            for resource in version["resources"]:
                assert resource["responseKind"]["kind"]
                assert resource["scope"] in ("Namespaced", "Cluster")
                assert resource["verbs"] == sorted(resource["verbs"])
                for sub in resource.get("subresources", []):
                    assert sub["responseKind"]["kind"]


ORDER = [
    "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling",
    "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
    "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io", "coordination.k8s.io", "node.k8s.io",
    "discovery.k8s.io",
]  # fmt: skip


async def test_groups_and_versions_come_by_priority(http: Http) -> None:
    for plural, group in (("zebras", "zoo.example.com"), ("ants", "ants.example.com")):
        body = crd(group, plural, plural.capitalize()[:-1], "v1alpha1", "v1", "v1beta2", "v2", "v1beta1", "foo")
        assert (await http("POST", CRDS, body)).code == 201
        await served(http, f"/apis/{group}/v1/{plural}")
    items = await aggregated(http)
    names = [item["metadata"]["name"] for item in items]
    assert [name for name in names if name in ORDER] == ORDER
    assert names[-2:] == ["ants.example.com", "zoo.example.com"]
    assert [v["version"] for v in items[-1]["versions"]] == ["v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]
    assert [v["version"] for v in by_name(items)["autoscaling"]["versions"]] == ["v2", "v1"]
    legacy = [group["name"] for group in (await http("GET", "/apis")).json()["groups"]]
    assert legacy == names


async def test_a_crd_appears_and_disappears(http: Http) -> None:
    before = (await http("GET", "/apis", headers={"Accept": NEW_CLIENT})).headers["ETag"]
    assert (await http("POST", CRDS, crd("example.com", "gadgets", "Gadget", "v1"))).code == 201
    await served(http, "/apis/example.com/v1")
    answer = await http("GET", "/apis", headers={"Accept": NEW_CLIENT, "If-None-Match": before})
    assert answer.code == 200
    [resource] = by_name(answer.json()["items"])["example.com"]["versions"][0]["resources"]
    assert (resource["resource"], resource["shortNames"], resource["categories"]) == ("gadgets", ["ga"], ["all"])
    assert [sub["subresource"] for sub in resource["subresources"]] == ["status"]
    [main, status] = (await http("GET", "/apis/example.com/v1")).json()["resources"]
    assert (main["name"], status["name"], main["storageVersionHash"]) == (
        "gadgets", "gadgets/status", main["storageVersionHash"],
    )  # fmt: skip
    assert (await http("DELETE", f"{CRDS}/gadgets.example.com")).code == 200
    await served(http, "/apis/example.com/v1", 404)
    assert "example.com" not in by_name(await aggregated(http))


async def test_a_backend_that_is_down_makes_only_its_own_version_stale(http: Http) -> None:
    service = {
        "metadata": {"name": "v1.broken.example.com"},
        "spec": {
            "group": "broken.example.com", "version": "v1", "groupPriorityMinimum": 19000, "versionPriority": 15,
            "insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": "nothing-there"},
        },
    }  # fmt: skip
    assert (await http("POST", APISERVICES, service)).code == 201
    await served(http, "/apis/broken.example.com")
    items = await aggregated(http)
    assert [item["metadata"]["name"] for item in items[:3]] == ["apiregistration.k8s.io", "broken.example.com", "apps"]
    broken = items.pop(1)
    assert broken["versions"] == [{"version": "v1", "freshness": "Stale", "resources": []}]
    assert all(v["freshness"] == "Current" for item in items for v in item["versions"])
    assert (await http("GET", "/apis/broken.example.com/v1")).code == 503
    assert (await http("GET", "/apis/broken.example.com/v1/things")).code == 503
    groups = [group["name"] for group in (await http("GET", "/apis")).json()["groups"]]
    assert groups[1] == "broken.example.com"
    assert (await http("DELETE", f"{APISERVICES}/v1.broken.example.com")).code == 200
    await served(http, "/apis/broken.example.com", 404)


async def test_an_aggregated_version_wins_over_a_custom_one(http: Http) -> None:
    assert (await http("POST", CRDS, crd("both.example.com", "things", "Thing", "v1"))).code == 201
    await served(http, "/apis/both.example.com/v1/things")
    service = {
        "metadata": {"name": "v1.both.example.com"},
        "spec": {
            "group": "both.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": "nothing-there"},
        },
    }  # fmt: skip
    existing = await http("GET", f"{APISERVICES}/v1.both.example.com")
    if existing.code == 200:
        service["metadata"]["resourceVersion"] = existing.json()["metadata"]["resourceVersion"]
        answer = await http("PUT", f"{APISERVICES}/v1.both.example.com", service)
    else:
        answer = await http("POST", APISERVICES, service)
    assert answer.code in (200, 201), answer.body
    assert by_name(await aggregated(http))["both.example.com"]["versions"][0]["freshness"] == "Stale"
    assert (await http("GET", "/apis/both.example.com/v1/things")).code == 503

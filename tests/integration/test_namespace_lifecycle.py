"""Namespaces from creation to the last condition, as clients see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Conflict, Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, APISERVICES, CONFIG_MAPS, CRDS, DEPLOYMENTS, NAMESPACES, PODS, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.support.custom_kinds import definition
from tests.support.eventually import eventually
from tests.support.running import api_server
from tests.support.wire import Http

HOLD = "example.com/hold"


async def make_namespace(http: Http, name: str, **meta: Any) -> Obj:
    answer = await http("POST", "/api/v1/namespaces", {"metadata": {"name": name, **meta}})
    assert answer.code == 201, answer.body
    made: Obj = answer.json()
    return made


async def hold(client: Client, name: str, *finalizers: str, namespace: str = "team") -> Obj:
    meta = {"name": name, "namespace": namespace, "finalizers": list(finalizers)}
    return await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def namespace(server: ApiServer, name: str = "team") -> Obj | None:
    return server.cache.get(NAMESPACES.group_resource, "", name)


def conditions(server: ApiServer, name: str = "team") -> dict[str, tuple[str, str, str]]:
    found = (namespace(server, name) or {}).get("status", {}).get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found}


FINE = {
    "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False", "ParsedGroupVersions", "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished",
    ),
}  # fmt: skip


async def test_a_new_namespace_is_active_and_carries_its_finalizer_and_name_label(http: Http) -> None:
    made = await make_namespace(http, "team")
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_the_first_namespaces_cannot_be_deleted(http: Http, name: str) -> None:
    answer = await http("DELETE", f"/api/v1/namespaces/{name}")
    assert answer.code == 403
    assert answer.json()["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert answer.json()["reason"] == "Forbidden"
    assert (await http("GET", f"/api/v1/namespaces/{name}")).json()["status"]["phase"] == "Active"


async def test_a_namespace_gets_an_account_and_the_ca_and_keeps_them(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team")

    def account() -> Obj | None:
        return server.cache.get(ACCOUNTS.group_resource, "team", "default")

    def bundle() -> Obj | None:
        return server.cache.get(CONFIG_MAPS.group_resource, "team", "kube-root-ca.crt")

    await eventually(lambda: account() and bundle())
    assert bundle()["data"] == {"ca.crt": server.pki.ca.cert_pem.decode()}
    assert bundle()["metadata"]["annotations"]["kubernetes.io/description"]
    old = account()["metadata"]["uid"]
    await client.delete(ACCOUNTS, "default", "team")
    await client.delete(CONFIG_MAPS, "kube-root-ca.crt", "team")
    await eventually(lambda: account() and account()["metadata"]["uid"] != old and bundle())
    await client.patch(CONFIG_MAPS, "kube-root-ca.crt", "team", {"data": {"ca.crt": "forged"}})
    await eventually(lambda: bundle()["data"]["ca.crt"] != "forged")


async def test_deleting_answers_the_terminating_namespace_and_empties_it(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team")
    for name in ("a", "b"):
        await hold(client, name)
        meta = {"name": name, "namespace": "team"}
        await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    meta = {"name": "web", "namespace": "team"}
    await client.create(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    answer = await http("DELETE", "/api/v1/namespaces/team")
    assert answer.code == 200
    shown = answer.json()
    assert shown["kind"] == "Namespace"
    assert shown["status"]["phase"] == "Terminating"
    assert "deletionTimestamp" in shown["metadata"]
    await eventually(lambda: namespace(server) is None)
    for gvr in (CONFIG_MAPS, SECRETS, DEPLOYMENTS, ACCOUNTS):
        assert server.cache.list(gvr.group_resource, "team") == []
    assert (await http("GET", "/api/v1/namespaces/team")).code == 404


async def test_deleting_again_answers_the_same_namespace_unchanged(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team")
    await hold(client, "held", HOLD)
    await http("DELETE", "/api/v1/namespaces/team")
    await eventually(lambda: conditions(server))
    version = namespace(server)["metadata"]["resourceVersion"]
    again = await http("DELETE", "/api/v1/namespaces/team")
    assert again.code == 200
    assert again.json()["status"]["phase"] == "Terminating"
    assert again.json()["metadata"]["resourceVersion"] == version


async def test_finalizers_that_hold_a_namespace_are_reported_in_its_conditions(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team")
    await hold(client, "one", HOLD)
    await hold(client, "two", HOLD, "example.com/other")
    meta = {"name": "s", "namespace": "team", "finalizers": [HOLD]}
    await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": meta})
    await http("DELETE", "/api/v1/namespaces/team")
    await eventually(lambda: conditions(server))
    assert conditions(server) == FINE | {
        "NamespaceContentRemaining": (
            "True", "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances, secrets. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True", "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 3 resource instances, "
            "example.com/other in 1 resource instances",
        ),
    }  # fmt: skip
    order = [c["type"] for c in namespace(server)["status"]["conditions"]]
    assert order == list(FINE)
    assert all(c["lastTransitionTime"] for c in namespace(server)["status"]["conditions"])
    await client.patch(SECRETS, "s", "team", {"metadata": {"finalizers": None}})
    await client.patch(CONFIG_MAPS, "two", "team", {"metadata": {"finalizers": None}})
    left = "Some resources are remaining: configmaps. has 1 resource instances"
    await eventually(lambda: conditions(server)["NamespaceContentRemaining"][2] == left)
    await client.patch(CONFIG_MAPS, "one", "team", {"metadata": {"finalizers": None}})
    await eventually(lambda: namespace(server) is None)


async def test_custom_resources_hold_a_namespace_and_are_named_with_their_group(
    server: ApiServer, http: Http, client: Client
) -> None:
    await client.create(CRDS, definition("ns.example.com", "Box", plural="boxes"))
    boxes = GVR("ns.example.com", "v1", "boxes")
    await eventually(lambda: server.registry.get(boxes))
    await make_namespace(http, "team")
    meta = {"name": "box", "namespace": "team", "finalizers": [HOLD]}
    await client.create(boxes, {"apiVersion": "ns.example.com/v1", "kind": "Box", "metadata": meta})
    await http("DELETE", "/api/v1/namespaces/team")
    left = "Some resources are remaining: boxes.ns.example.com has 1 resource instances"
    await eventually(lambda: conditions(server) and conditions(server)["NamespaceContentRemaining"][2] == left)
    await client.patch(boxes, "box", "team", {"metadata": {"finalizers": None}})
    await eventually(lambda: namespace(server) is None)


async def test_a_group_that_does_not_answer_holds_a_namespace(server: ApiServer, http: Http, client: Client) -> None:
    """Whatever it serves may still have objects in there."""
    name = "v1.silent.example.com"
    spec = {"group": "silent.example.com", "version": "v1", "service": {"namespace": "default", "name": "nobody"},
            "insecureSkipTLSVerify": True, "groupPriorityMinimum": 1000, "versionPriority": 10}  # fmt: skip
    await client.create(
        APISERVICES,
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec},
    )

    def available() -> str:
        found = server.cache.get(APISERVICES.group_resource, "", name) or {}
        return str([c["reason"] for c in found.get("status", {}).get("conditions") or []])

    await eventually(lambda: "ServiceNotFound" in available(), show=available)
    await make_namespace(http, "team")
    await http("DELETE", "/api/v1/namespaces/team")
    await eventually(lambda: conditions(server))
    status, reason, message = conditions(server)["NamespaceDeletionDiscoveryFailure"]
    assert (status, reason) == ("True", "DiscoveryFailed")
    assert message.startswith("Discovery failed for some groups, 1 failing: ")
    assert "silent.example.com/v1" in message
    await client.delete(APISERVICES, name)
    await eventually(lambda: namespace(server) is None)


async def test_a_namespace_with_finalizers_of_its_own_stays_until_they_go(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team", finalizers=[HOLD])
    await http("DELETE", "/api/v1/namespaces/team")
    await eventually(lambda: not (namespace(server) or {})["spec"].get("finalizers"))
    assert namespace(server)["status"]["phase"] == "Terminating"
    await client.patch(NAMESPACES, "team", "", {"metadata": {"finalizers": None}})
    await eventually(lambda: namespace(server) is None)


async def test_nothing_can_be_made_in_a_namespace_that_goes(server: ApiServer, http: Http, client: Client) -> None:
    await make_namespace(http, "team")
    await hold(client, "held", HOLD)
    await http("DELETE", "/api/v1/namespaces/team")
    answer = await http("POST", "/api/v1/namespaces/team/configmaps", {"metadata": {"name": "late"}})
    assert answer.code == 403
    assert answer.json()["message"] == (
        'configmaps "late" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    [cause] = answer.json()["details"]["causes"]
    refusal = "namespace team is being terminated"
    assert cause == {"reason": "NamespaceTerminating", "message": refusal, "field": "metadata.namespace"}
    await client.patch(CONFIG_MAPS, "held", "team", {"data": {"still": "writable"}})


async def test_a_namespace_comes_back_new_after_it_is_gone(server: ApiServer, http: Http, client: Client) -> None:
    first = await make_namespace(http, "team")
    await hold(client, "config")
    await http("DELETE", "/api/v1/namespaces/team")
    await eventually(lambda: namespace(server) is None)
    second = await make_namespace(http, "team")
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert (await http("GET", "/api/v1/namespaces/team/configmaps/config")).code == 404
    await eventually(lambda: server.cache.get(ACCOUNTS.group_resource, "team", "default"))


async def test_a_namespace_cannot_be_made_while_the_old_one_goes(server: ApiServer, http: Http, client: Client) -> None:
    await make_namespace(http, "team")
    await hold(client, "held", HOLD)
    await http("DELETE", "/api/v1/namespaces/team")
    answer = await http("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert answer.code == 409
    assert answer.json()["message"] == 'object is being deleted: namespaces "team" already exists'


async def test_many_namespaces_go_at_the_same_time(server: ApiServer, http: Http, client: Client) -> None:
    names = [f"team-{number}" for number in range(20)]
    for name in names:
        await make_namespace(http, name)
        await hold(client, "config", namespace=name)
    for name in names:
        await http("DELETE", f"/api/v1/namespaces/{name}")
    await eventually(lambda: all(namespace(server, name) is None for name in names))
    assert not [o for o in server.cache.list(CONFIG_MAPS.group_resource) if o["metadata"]["namespace"] in names]


async def test_a_delete_with_a_wrong_uid_changes_nothing(http: Http, client: Client) -> None:
    await make_namespace(http, "team")
    with pytest.raises(Conflict):
        await client.delete(NAMESPACES, "team", uid="another")
    with pytest.raises(Forbidden):
        await client.delete(NAMESPACES, "kube-system")
    assert (await http("GET", "/api/v1/namespaces/team")).json()["status"]["phase"] == "Active"


async def test_content_stays_readable_and_writable_until_the_delay_is_over(certificates: Path) -> None:
    clock = FakeClock()
    async with api_server(certificates, clock, namespace_deletion_delay=5.0) as server:
        client = server.client()
        await client.create(NAMESPACES, {"metadata": {"name": "team"}})
        await hold(client, "held", HOLD)
        await client.delete(NAMESPACES, "team")
        await clock.advance(4.9)
        await client.patch(CONFIG_MAPS, "held", "team", {"metadata": {"finalizers": None}, "data": {"a": "b"}})
        assert (await client.get(CONFIG_MAPS, "held", "team"))["data"] == {"a": "b"}
        assert namespace(server)["status"] == {"phase": "Terminating"}
        await clock.advance(0.2)
        await eventually(lambda: namespace(server) is None)


async def test_pods_go_first_and_while_one_is_left_nothing_else_does(
    server: ApiServer, http: Http, client: Client
) -> None:
    await make_namespace(http, "team")
    await hold(client, "used-by-the-pod")
    meta = {"name": "p", "namespace": "team", "finalizers": [HOLD]}
    await client.create(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await http("DELETE", "/api/v1/namespaces/team")
    left = "Some resources are remaining: pods. has 1 resource instances"
    await eventually(lambda: conditions(server) and conditions(server)["NamespaceContentRemaining"][2] == left)
    assert await client.get(CONFIG_MAPS, "used-by-the-pod", "team")
    await client.patch(PODS, "p", "team", {"metadata": {"finalizers": None}})
    await eventually(lambda: namespace(server) is None)

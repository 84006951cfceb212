"""What every server has from its first second, looked at over the wire."""

from __future__ import annotations

import json

from karmada.kube.server.app import ApiServer
from tests.support.cases import cases
from tests.support.wire import Http


async def test_the_server_is_a_service_in_its_own_api(server: ApiServer, http: Http) -> None:
    service = (await http("GET", "/api/v1/namespaces/default/services/kubernetes")).json()
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    [port] = service["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("https", 443, server.port)
    endpoints = (await http("GET", "/api/v1/namespaces/default/endpoints/kubernetes")).json()
    [subset] = endpoints["subsets"]
    assert [address["ip"] for address in subset["addresses"]] == ["127.0.0.1"]
    assert subset["ports"][0]["port"] == server.port
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    found = (await http("GET", path)).json()
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    assert "ownerReferences" not in found["metadata"]
    assert found["endpoints"][0]["addresses"] == ["127.0.0.1"]


async def test_aggregated_servers_learn_whom_to_trust(server: ApiServer, http: Http) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    data = (await http("GET", path)).json()["data"]
    assert data["client-ca-file"] == server.pki.ca.cert_pem.decode()
    assert data["requestheader-client-ca-file"] == server.pki.front_proxy_ca.cert_pem.decode()
    assert json.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"]
    assert json.loads(data["requestheader-username-headers"]) == ["X-Remote-User"]
    assert json.loads(data["requestheader-group-headers"]) == ["X-Remote-Group"]
    assert json.loads(data["requestheader-uid-headers"]) == ["X-Remote-Uid"]
    assert json.loads(data["requestheader-extra-headers-prefix"]) == ["X-Remote-Extra-"]
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/extension-apiserver-authentication-reader"
    assert (await http("GET", role)).code == 200


@cases(("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
async def test_the_system_has_its_priorities(name: str, value: int, http: Http) -> None:
    found = (await http("GET", f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")).json()
    assert found["value"] == value


async def test_the_default_roles_are_marked_as_such(http: Http) -> None:
    roles = (await http("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles")).json()["items"]
    by_name = {role["metadata"]["name"]: role for role in roles}
    wanted = {
        "cluster-admin", "admin", "edit", "view", "system:discovery", "system:basic-user", "system:public-info-viewer",
        "system:node", "system:node-proxier", "system:kube-scheduler", "system:kube-controller-manager",
        "system:auth-delegator", "system:node-bootstrapper", "system:monitoring",
        "system:service-account-issuer-discovery", "system:controller:namespace-controller",
    }  # fmt: skip
    assert wanted <= by_name.keys()
    for name in wanted:
        meta = by_name[name]["metadata"]
        assert meta["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert meta["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "true"

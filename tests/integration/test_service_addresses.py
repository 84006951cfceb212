"""Services: cluster IPs and node ports are given, kept, refused and given back."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import SERVICES, interleave, ok, patch, quiet_revision, refused, revision
from tests.support.objects import kube_object
from tests.support.wire import Http


def service(name: str = "s", **spec: Any) -> Any:
    return kube_object("v1", "Service", name, spec={"ports": [{"port": 80}], **spec})


async def test_a_service_is_given_an_address(http: Http) -> None:
    spec = ok(await http("POST", SERVICES, service()), 201)["spec"]
    assert spec["clusterIP"].startswith("10.")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"], spec["type"]) == (["IPv4"], "SingleStack", "ClusterIP")
    assert spec["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]


async def test_headless_and_external_services_get_none(http: Http) -> None:
    headless = ok(await http("POST", SERVICES, service("h", clusterIP="None", selector={"a": "b"})), 201)["spec"]
    assert (headless["clusterIP"], headless["clusterIPs"], headless["ipFamilies"]) == ("None", ["None"], ["IPv4"])
    without_pods = ok(await http("POST", SERVICES, service("w", clusterIP="None")), 201)["spec"]
    assert (without_pods["ipFamilies"], without_pods["ipFamilyPolicy"]) == (["IPv4", "IPv6"], "RequireDualStack")
    external = ok(await http("POST", SERVICES, service("e", type="ExternalName", externalName="example.com")), 201)
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & external["spec"].keys()


async def test_an_address_is_taken_once_and_free_again_after_deletion(http: Http) -> None:
    ok(await http("POST", SERVICES, service("a", clusterIP="10.96.0.50")), 201)
    before = await quiet_revision(http)
    refused(
        await http("POST", SERVICES, service("b", clusterIP="10.96.0.50")),
        422,
        "Invalid",
        'spec.clusterIPs: Invalid value: ["10.96.0.50"]: failed to allocate IP 10.96.0.50: '
        "provided IP is already allocated",
    )
    refused(
        await http("POST", SERVICES, service("b", clusterIP="10.1.2.3")),
        422,
        "Invalid",
        'spec.clusterIPs: Invalid value: ["10.1.2.3"]: failed to allocate IP 10.1.2.3: the provided network '
        "does not match the current range",
    )
    assert await revision(http) == before
    ok(await http("DELETE", f"{SERVICES}/a"))
    ok(await http("POST", SERVICES, service("b", clusterIP="10.96.0.50")), 201)


async def test_node_ports_are_given_and_refused(http: Http) -> None:
    [port] = ok(await http("POST", SERVICES, service("a", type="NodePort")), 201)["spec"]["ports"]
    assert 30000 <= port["nodePort"] <= 32767
    wish = [{"port": 80, "nodePort": port["nodePort"]}]
    refused(
        await http("POST", SERVICES, service("b", type="NodePort", ports=wish)),
        422,
        "Invalid",
        f"spec.ports[0].nodePort: Invalid value: {port['nodePort']}: provided port is already allocated",
    )
    refused(
        await http("POST", SERVICES, service("b", type="NodePort", ports=[{"port": 80, "nodePort": 80}])),
        422,
        "Invalid",
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
        "The range of valid ports is 30000-32767",
    )
    local = service("l", type="LoadBalancer", externalTrafficPolicy="Local")
    assert ok(await http("POST", SERVICES, local), 201)["spec"]["healthCheckNodePort"] >= 30000


async def test_a_put_that_leaves_them_out_keeps_what_was_given(http: Http) -> None:
    stored = ok(await http("POST", SERVICES, service(type="NodePort")), 201)["spec"]
    kept = ok(await http("PUT", f"{SERVICES}/s", service(type="NodePort", sessionAffinity="ClientIP")))["spec"]
    assert kept["clusterIP"] == stored["clusterIP"]
    assert kept["ports"][0]["nodePort"] == stored["ports"][0]["nodePort"]
    refused(
        await patch(http, f"{SERVICES}/s", {"spec": {"clusterIP": "10.96.9.9", "clusterIPs": ["10.96.9.9"]}}),
        422,
        "Invalid",
        'spec.clusterIPs[0]: Invalid value: ["10.96.9.9"]: may not change once set',
    )


async def test_a_change_of_type_gives_back(http: Http) -> None:
    stored = ok(await http("POST", SERVICES, service(type="NodePort")), 201)["spec"]
    node_port = stored["ports"][0]["nodePort"]
    plain = ok(await http("PUT", f"{SERVICES}/s", service(type="ClusterIP")))["spec"]
    assert "nodePort" not in plain["ports"][0]
    ok(await http("POST", SERVICES, service("b", type="NodePort", ports=[{"port": 80, "nodePort": node_port}])), 201)
    external = service(type="ExternalName", externalName="x.example.com")
    assert "clusterIP" not in ok(await http("PUT", f"{SERVICES}/s", external))["spec"]
    ok(await http("POST", SERVICES, service("c", clusterIP=stored["clusterIP"])), 201)


async def test_a_refused_service_gives_back_what_it_took(http: Http) -> None:
    bad = service("bad", type="NodePort", clusterIP="10.96.0.60", ports=[{"port": 80, "nodePort": 30200}, {"port": 80}])
    assert (await http("POST", SERVICES, bad)).code == 422
    good = service("good", type="NodePort", clusterIP="10.96.0.60", ports=[{"port": 80, "nodePort": 30200}])
    ok(await http("POST", SERVICES, good), 201)


async def test_concurrent_services_never_share(http: Http, server: ApiServer) -> None:
    interleave(server)
    answers = await asyncio.gather(*(http("POST", SERVICES, service(f"s{i}", type="NodePort")) for i in range(12)))
    specs = [ok(answer, 201)["spec"] for answer in answers]
    assert len({spec["clusterIP"] for spec in specs}) == 12
    assert len({spec["ports"][0]["nodePort"] for spec in specs}) == 12
    wish = [http("POST", SERVICES, service(f"w{i}", clusterIP="10.96.0.70")) for i in range(5)]
    assert sorted(answer.code for answer in await asyncio.gather(*wish)) == [201] + [422] * 4


async def test_the_first_address_is_the_servers_own(http: Http) -> None:
    assert ok(await http("GET", f"{SERVICES}/kubernetes"))["spec"]["clusterIP"] == "10.96.0.1"
    refused(await http("POST", SERVICES, service(clusterIP="10.96.0.1")), 422, "Invalid", "already allocated")
    ok(await http("POST", SERVICES, service()), 201)

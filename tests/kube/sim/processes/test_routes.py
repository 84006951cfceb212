"""Where a Service's connections go, and what its names resolve to."""

from __future__ import annotations

from karmada.kube.client.cluster_names import resolve
from karmada.kube.objects.types import Obj
from karmada.kube.sim.processes.routes import Backend, Frontend, backends, frontends, names_of
from tests.support.cases import cases

PORTS = [{"name": "web", "port": 80, "nodePort": 30080}, {"name": "dns", "port": 53, "protocol": "UDP"}]


def service(**spec: object) -> Obj:
    return {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": PORTS, **spec}}


def piece(*endpoints: Obj, port: int = 8080) -> Obj:
    ports = [{"name": "web", "port": port}]
    return {"addressType": "IPv4", "ports": ports, "endpoints": list(endpoints)}


def endpoint(address: str, *, ready: bool = True, pod: str = "", hostname: str = "") -> Obj:
    found: Obj = {"addresses": [address], "conditions": {"ready": ready}}
    if pod:
        found["targetRef"] = {"kind": "Pod", "name": pod}
    if hostname:
        found["hostname"] = hostname
    return found


def test_a_service_is_served_at_its_loopback_addresses_for_tcp_only() -> None:
    found = frontends(service(clusterIP="127.9.128.4", type="NodePort"), ["127.9.192.2", "172.18.0.2"])
    assert found == {Frontend("127.9.128.4", 80, "web"), Frontend("127.9.192.2", 30080, "web")}


def test_the_address_of_a_load_balancer_is_served_too() -> None:
    balanced = {**service(clusterIP="127.9.128.4"), "status": {"loadBalancer": {"ingress": [{"ip": "127.9.224.1"}]}}}
    assert {frontend.address for frontend in frontends(balanced, [])} == {"127.9.128.4", "127.9.224.1"}


@cases({"clusterIP": "None"}, {"clusterIP": "10.96.0.4"}, {"type": "ExternalName"}, {})
def test_other_services_are_not_served(spec: Obj) -> None:
    assert frontends(service(**spec), []) == set()


def test_only_ready_endpoints_of_the_port_are_backends() -> None:
    slices = [
        piece(endpoint("127.9.0.2", pod="a"), endpoint("127.9.0.3", ready=False, pod="b")),
        piece(endpoint("127.9.0.4"), port=9090),
    ]
    assert backends(slices, "web") == [Backend("127.9.0.2", 8080, "a"), Backend("127.9.0.4", 9090, "")]
    assert backends(slices, "other") == []


NAMES = {
    **names_of(service(clusterIP="127.9.128.4"), [], {80: 40123}),
    "db.shop": {"addresses": ["127.9.0.7", "127.9.0.8"]},
    "db-0.db.shop": {"addresses": ["127.9.0.7"]},
}


@cases(
    ("web.shop.svc", [("127.9.128.4", 443)]),
    ("web.shop.svc.cluster.local", [("127.9.128.4", 443)]),
    ("WEB.shop.svc.cluster.local.", [("127.9.128.4", 443)]),
    ("web.shop", [("127.9.128.4", 443)]),
    ("web", [("127.9.128.4", 443)]),
    ("db.shop.svc", [("127.9.0.7", 443), ("127.9.0.8", 443)]),
    ("db-0.db.shop.svc", [("127.9.0.7", 443)]),
    ("other.shop.svc", []),
    ("web.other.svc", []),
    ("web.shop.svc.example.com", []),
    ("example.com", []),
    ("web.cluster.local", []),
)
def test_names_of_services_resolve_as_in_a_cluster(host: str, expected: list[tuple[str, int]]) -> None:
    assert resolve(NAMES, host, 443, "shop") == expected


def test_a_port_that_is_served_at_another_number_resolves_to_that() -> None:
    assert resolve(NAMES, "web.shop.svc", 80, "") == [("127.9.128.4", 40123)]


def test_a_headless_service_has_the_names_of_its_ready_pods() -> None:
    slices = [piece(endpoint("127.9.0.7", hostname="db-0"), endpoint("127.9.0.8", ready=False, hostname="db-1"))]
    assert names_of(service(clusterIP="None"), slices, {}) == {
        "web.shop": {"addresses": ["127.9.0.7"]},
        "db-0.web.shop": {"addresses": ["127.9.0.7"]},
    }

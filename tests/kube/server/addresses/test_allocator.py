"""Cluster IPs and node ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karmada.kube.kinds.services import SERVICE
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import InternalError, Invalid
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.addresses.allocator import Allocator

PORTS = (30000, 32767)


class Services:
    """A store of Services that notifies the allocator of every change, as the watch cache does."""

    def __init__(self, *, cidr: str = "10.96.0.0/12", ports: tuple[int, int] = PORTS, reports: bool = True) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.allocator = Allocator(self, cidr, ports)
        self._reports = reports
        self._uid = 0

    def get(self, _resource: GroupResource, namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects.get((namespace, name))

    def list(self, _resource: GroupResource, _namespace: str = "") -> list[dict[str, Any]]:
        return list(self.objects.values())

    async def scan(self, resource: GroupResource, namespace: str = "") -> AsyncIterator[dict[str, Any]]:
        for obj in self.list(resource, namespace):
            yield obj

    def make(self, name: str, **spec: Any) -> dict[str, Any]:
        self._uid += 1
        obj = {
            "metadata": {"name": name, "namespace": "ns", "uid": str(self._uid)},
            "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec},
        }
        SERVICE.default(obj)
        SERVICE.prepare_create(obj)
        return obj

    def create(self, name: str, *, stored: bool = True, **spec: Any) -> dict[str, Any]:
        obj = self.make(name, **spec)
        taken = self.allocator.choose(obj, None)
        if stored:
            self._put(name, obj)
        if taken is not None:
            taken.finish(stored)
        return obj

    def update(self, name: str, **spec: Any) -> dict[str, Any]:
        old = self.objects["ns", name]
        new = {"metadata": dict(old["metadata"]), "spec": {"ports": [{"port": 80}], **spec}, "status": old["status"]}
        SERVICE.default(new)
        SERVICE.prepare_update(new, old)
        taken = self.allocator.choose(new, old)
        self._put(name, new)
        if taken is not None:
            taken.finish(True)
        return new

    def delete(self, name: str) -> None:
        self._put(name, None)

    def _put(self, name: str, obj: dict[str, Any] | None) -> None:
        old = self.objects.pop(("ns", name), None)
        if obj is not None:
            self.objects["ns", name] = obj
        if self._reports:
            self.allocator.observe(old, obj)


def messages(error: Invalid) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in error.causes]


def test_a_service_gets_an_address() -> None:
    spec = Services().create("a")["spec"]
    assert spec["clusterIP"].startswith(("10.96.", "10.97.", "10.98.", "10.99.", "10.1"))
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_a_headless_service_gets_none() -> None:
    spec = Services().create("a", clusterIP="None")["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_an_external_name_needs_nothing() -> None:
    spec = Services().create("a", type="ExternalName", externalName="x.example", ports=[])["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(spec)


def test_an_address_outside_the_range_is_refused() -> None:
    with pytest.raises(Invalid) as caught:
        Services().create("a", clusterIP="10.1.2.3")
    assert messages(caught.value) == [
        'spec.clusterIPs: Invalid value: ["10.1.2.3"]: failed to allocate IP 10.1.2.3: the provided network '
        "does not match the current range"
    ]
    assert caught.value.message.startswith('Service "a" is invalid: spec.clusterIPs: Invalid value')


def test_an_address_that_is_taken_is_refused() -> None:
    services = Services()
    services.create("a", clusterIP="10.96.0.10")
    with pytest.raises(Invalid) as caught:
        services.create("b", clusterIP="10.96.0.10")
    assert "failed to allocate IP 10.96.0.10: provided IP is already allocated" in caught.value.message


def test_node_ports_are_given_out_and_refused() -> None:
    services = Services()
    spec = services.create("a", type="NodePort")["spec"]
    assert PORTS[0] <= spec["ports"][0]["nodePort"] <= PORTS[1]
    with pytest.raises(Invalid) as outside:
        services.create("b", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert messages(outside.value) == [
        "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
        "The range of valid ports is 30000-32767"
    ]
    with pytest.raises(Invalid) as taken:
        services.create("c", type="NodePort", ports=[{"port": 80, "nodePort": spec["ports"][0]["nodePort"]}])
    assert messages(taken.value)[0].endswith("provided port is already allocated")


def test_a_refused_service_keeps_nothing() -> None:
    services = Services()
    with pytest.raises(Invalid):
        services.create("a", type="NodePort", clusterIP="10.96.0.77", ports=[{"port": 80, "nodePort": 1}])
    assert services.create("b", clusterIP="10.96.0.77")["spec"]["clusterIP"] == "10.96.0.77"


def test_one_port_under_two_protocols_has_one_node_port() -> None:
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    found = Services().create("a", type="NodePort", ports=ports)["spec"]["ports"]
    assert found[0]["nodePort"] == found[1]["nodePort"]


def test_local_load_balancers_get_a_health_port() -> None:
    spec = Services().create("a", type="LoadBalancer", externalTrafficPolicy="Local")["spec"]
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]
    plain = Services().create("b", type="LoadBalancer", allocateLoadBalancerNodePorts=False)["spec"]
    assert "nodePort" not in plain["ports"][0]


def test_a_dry_run_gives_back() -> None:
    services = Services(cidr="10.0.0.0/30", ports=(30000, 30000))
    for _ in range(5):
        services.create("dry", stored=False, type="NodePort")
    services.create("a", type="NodePort")


def test_a_full_range_says_so() -> None:
    services = Services(cidr="10.0.0.0/30")
    services.create("a")
    services.create("b")
    with pytest.raises(InternalError) as caught:
        services.create("c")
    assert "range is full" in caught.value.message
    services.delete("a")
    services.create("c")


def test_what_is_not_needed_any_more_is_free_again() -> None:
    services = Services(ports=(30000, 30000))
    old = copy_json(services.create("a", type="NodePort"))
    services.update("a", type="ClusterIP")
    assert services.objects["ns", "a"]["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    services.create("b", type="NodePort")
    services.update("a", type="ExternalName", externalName="x.example", ports=[])
    assert services.create("c", clusterIP=old["spec"]["clusterIP"])


def test_an_update_keeps_its_address_and_ports() -> None:
    services = Services()
    old = copy_json(services.create("a", type="NodePort"))
    new = services.update("a", type="NodePort", selector={"x": "y"})
    assert new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    assert new["spec"]["ports"] == old["spec"]["ports"]


def test_services_that_were_there_before_keep_what_they_have() -> None:
    services = Services()
    first = services.create("a", clusterIP="10.96.0.10")
    later = Allocator(services)
    other = services.make("b", clusterIP="10.96.0.10")
    with pytest.raises(Invalid):
        later.choose(other, None)
    assert first["spec"]["clusterIP"] == "10.96.0.10"


def test_another_servers_services_are_respected_once_seen() -> None:
    one, other = Services(cidr="10.0.0.0/29"), Services(cidr="10.0.0.0/29")
    one.create("warm-up")
    theirs = other.create("theirs", clusterIP="10.0.0.5")
    one.objects["ns", "theirs"] = theirs
    one.allocator.observe(None, theirs)
    with pytest.raises(Invalid):
        one.create("mine", clusterIP="10.0.0.5")


def test_a_deletion_that_was_not_observed_does_no_harm() -> None:
    services = Services(reports=False)
    services.create("a", clusterIP="10.96.0.10")
    services.delete("a")
    services.create("b", clusterIP="10.96.0.10")


def test_a_late_deletion_event_does_not_free_the_successors_address() -> None:
    services = Services(reports=False)
    old = services.create("a", clusterIP="10.96.0.10")
    services.delete("a")
    services.create("a", clusterIP="10.96.0.10")
    services.allocator.observe(old, None)
    with pytest.raises(Invalid):
        services.create("b", clusterIP="10.96.0.10")


def test_two_creates_in_flight_never_get_the_same() -> None:
    services = Services(cidr="10.0.0.0/27", ports=(30000, 30029))
    made = [services.make(str(i), type="NodePort") for i in range(30)]
    for obj in made:
        services.allocator.choose(obj, None)
    assert max(Counter(obj["spec"]["clusterIP"] for obj in made).values()) == 1
    assert max(Counter(obj["spec"]["ports"][0]["nodePort"] for obj in made).values()) == 1


def test_dual_stack() -> None:
    services = Services(cidr="10.96.0.0/12,fd00::/108")
    spec = services.create("a", ipFamilyPolicy="PreferDualStack")["spec"]
    assert spec["ipFamilies"] == ["IPv4", "IPv6"]
    assert spec["clusterIPs"][1].startswith("fd00::")
    assert services.create("b")["spec"]["ipFamilies"] == ["IPv4"]
    with pytest.raises(Invalid) as caught:
        Services().create("c", ipFamilyPolicy="RequireDualStack")
    assert "this cluster is not configured for dual-stack services" in caught.value.message


def test_a_service_that_is_wrong_in_itself_is_left_to_validation() -> None:
    services = Services()
    assert services.allocator.choose(services.make("a", clusterIP="ten"), None) is None


actions = st.lists(st.tuples(st.sampled_from(["create", "delete", "fail", "retype"]), st.integers(0, 6)), max_size=40)


@given(actions)
@settings(max_examples=60)
def test_nothing_is_ever_held_by_two(steps: list[tuple[str, int]]) -> None:
    services = Services(cidr="10.0.0.0/28", ports=(30000, 30009))
    for action, number in steps:
        name = f"s{number}"
        exists = ("ns", name) in services.objects
        if action == "create" and not exists:
            services.create(name, type="NodePort")
        elif action == "fail" and not exists:
            services.create(name, stored=False, type="NodePort")
        elif action == "delete" and exists:
            services.delete(name)
        elif action == "retype" and exists:
            kind = "ClusterIP" if services.objects["ns", name]["spec"]["type"] == "NodePort" else "NodePort"
            services.update(name, type=kind)
        specs = [obj["spec"] for obj in services.objects.values()]
        held = Counter(
            [spec["clusterIP"] for spec in specs]
            + [p["nodePort"] for s in specs for p in s["ports"] if "nodePort" in p]
        )
        assert all(count == 1 for count in held.values())

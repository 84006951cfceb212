"""Services: defaults, rules, what updates keep; Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds.endpoints import ENDPOINT_SLICE, ENDPOINTS
from karmada.kube.kinds.services import SERVICE, address_errors
from karmada.kube.objects.copying import copy_json
from tests.kube.kinds.texts import texts
from tests.support.cases import cases
from tests.support.counting import counted_calls


def service(**spec: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "s", "namespace": "ns", "uid": "u"},
        "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}], **spec},
    }
    SERVICE.default(found)
    SERVICE.prepare_create(found)
    return found


def test_service_defaults() -> None:
    found = service()
    assert found["spec"] == {
        "selector": {"a": "b"},
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    }
    assert found["status"] == {"loadBalancer": {}}
    assert SERVICE.validate(found) == []


def test_load_balancers_and_affinity_have_more_defaults() -> None:
    spec = service(type="LoadBalancer", sessionAffinity="ClientIP")["spec"]
    assert (spec["externalTrafficPolicy"], spec["allocateLoadBalancerNodePorts"]) == ("Cluster", True)
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    assert "internalTrafficPolicy" not in service(type="ExternalName", externalName="x.y")["spec"]


@cases(
    ({"ports": []}, "spec.ports: Required value"),
    (
        {"ports": [{"port": 0}]},
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
    ),
    ({"ports": [{"port": 1}, {"port": 2}]}, "spec.ports[0].name: Required value"),
    (
        {"ports": [{"port": 1, "nodePort": 30000}]},
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
    ),
    (
        {"type": "Other"},
        'spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", '
        '"NodePort"',
    ),
    ({"type": "ExternalName"}, "spec.externalName: Required value"),
    (
        {"type": "ExternalName", "externalName": "a", "clusterIP": "10.96.0.5"},
        "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
    ),
    ({"type": "NodePort", "clusterIP": "None"}, "may not be set to 'None' for NodePort services"),
    ({"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.6"]}, "first value must match `clusterIP`"),
    ({"clusterIP": "ten"}, 'spec.clusterIPs[0]: Invalid value: "ten": must be a valid IP address'),
    ({"externalTrafficPolicy": "Local"}, "may only be set for externally-accessible services"),
    (
        {"healthCheckNodePort": 30000},
        "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
    ),
    (
        {"loadBalancerClass": "a/b"},
        "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
    ),
    (
        {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 90000}}},
        "must be greater than 0 and less than 86400",
    ),
)
def test_service_rules(spec: dict[str, Any], wanted: str) -> None:
    found = texts(SERVICE.validate(service(**spec)))
    assert any(wanted in text for text in found), found


def test_headless_and_external_services_need_no_ports() -> None:
    assert SERVICE.validate(service(ports=[], clusterIP="None")) == []
    assert SERVICE.validate(service(ports=[], type="ExternalName", externalName="a.example")) == []


ALLOCATED = {
    "type": "NodePort",
    "clusterIP": "10.96.0.9",
    "clusterIPs": ["10.96.0.9"],
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
    "ports": [{"name": "http", "port": 80, "nodePort": 30080}],
}


def updated(old: dict[str, Any], **spec: Any) -> dict[str, Any]:
    new = {"metadata": dict(old["metadata"]), "spec": {"selector": {"a": "b"}, **spec}, "status": old["status"]}
    SERVICE.default(new)
    SERVICE.prepare_update(new, old)
    return new


def test_a_put_keeps_what_was_allocated() -> None:
    old = service(**copy_json(ALLOCATED))
    new = updated(old, type="NodePort", ports=[{"name": "http", "port": 8080}])
    assert new["spec"]["clusterIP"] == "10.96.0.9"
    assert new["spec"]["clusterIPs"] == ["10.96.0.9"]
    assert new["spec"]["ports"][0]["nodePort"] == 30080
    assert SERVICE.validate(new) + SERVICE.validate_update(new, old) == []


def test_a_type_without_node_ports_lets_them_go() -> None:
    old = service(**copy_json(ALLOCATED))
    new = updated(old, **{**copy_json(ALLOCATED), "type": "ClusterIP", "externalTrafficPolicy": "Cluster"})
    assert "nodePort" not in new["spec"]["ports"][0]
    assert "externalTrafficPolicy" not in new["spec"]
    assert new["spec"]["clusterIP"] == "10.96.0.9"
    assert SERVICE.validate(new) == []


def test_an_external_name_has_no_address() -> None:
    old = service(**copy_json(ALLOCATED))
    new = updated(old, **{**copy_json(ALLOCATED), "type": "ExternalName", "externalName": "a.example"})
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(new["spec"])
    assert SERVICE.validate(new) + SERVICE.validate_update(new, old) == []


def test_an_address_does_not_change() -> None:
    old = service(**copy_json(ALLOCATED))
    new = updated(old, **{**copy_json(ALLOCATED), "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"]})
    wanted = 'spec.clusterIPs[0]: Invalid value: ["10.96.0.10"]: may not change once set'
    assert texts(SERVICE.validate_update(new, old)) == [wanted]


def test_changing_only_cluster_ip_means_both() -> None:
    old = service(**copy_json(ALLOCATED))
    new = updated(old, **{**copy_json(ALLOCATED), "clusterIP": "10.96.0.10"})
    assert new["spec"]["clusterIPs"] == ["10.96.0.10"]


def test_a_load_balancers_class_and_health_port_are_fixed() -> None:
    base = {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "healthCheckNodePort": 30001,
        "loadBalancerClass": "a/b",
    }
    old, new = service(**base), service(**{**base, "healthCheckNodePort": 30002, "loadBalancerClass": "a/c"})
    assert texts(SERVICE.validate_update(new, old)) == [
        'spec.loadBalancerClass: Invalid value: "a/c": may not change once set',
        "spec.healthCheckNodePort: Forbidden: field is immutable",
    ]


def test_field_selectors() -> None:
    assert SERVICE.fields["spec.type"](service()) == "ClusterIP"
    assert SERVICE.fields["spec.clusterIP"](service(clusterIP="None")) == "None"


def endpoint_slice(**fields: Any) -> dict[str, Any]:
    found = {
        "metadata": {"name": "s"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
        **fields,
    }
    ENDPOINT_SLICE.default(found)
    return found


def test_slices_have_named_ports() -> None:
    assert endpoint_slice()["ports"] == [{"port": 80, "name": "", "protocol": "TCP"}]
    assert ENDPOINT_SLICE.validate(endpoint_slice()) == []


@cases(
    ({"addressType": "IPX"}, 'addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"'),
    ({"endpoints": [{"addresses": ["::1:2"]}]}, "endpoints[0].addresses[0]: Invalid value"),
    (
        {"endpoints": [{"addresses": ["169.254.0.1"]}]},
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
    ),
    ({"endpoints": [{"addresses": []}]}, "endpoints[0].addresses: Required value: must contain at least 1 address"),
    (
        {"endpoints": [{"addresses": ["10.0.0.1"]}] * 1001},
        "endpoints: Too many: 1001: must have at most 1000 items",
    ),
    ({"ports": [{"port": 1}, {"port": 2}]}, 'ports[1].name: Duplicate value: ""'),
)
def test_slice_rules(fields: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(ENDPOINT_SLICE.validate(endpoint_slice(**fields))))


def test_a_slices_family_is_fixed() -> None:
    errors = ENDPOINT_SLICE.validate_update(endpoint_slice(addressType="IPv6"), endpoint_slice())
    assert texts(errors) == ['addressType: Invalid value: "IPv6": field is immutable']


def test_a_slices_generation_follows_labels_but_not_annotations() -> None:
    generation = ENDPOINT_SLICE.generation
    assert generation is not None
    labelled, annotated = endpoint_slice(), endpoint_slice()
    labelled["metadata"]["labels"] = {"a": "b"}
    annotated["metadata"]["annotations"] = {"a": "b"}
    assert generation(labelled) != generation(endpoint_slice())
    assert generation(annotated) == generation(endpoint_slice())


def test_endpoints_need_addresses_that_are_addresses() -> None:
    found = {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": "x"}], "ports": [{"port": 80}]}, {}]}
    ENDPOINTS.default(found)
    messages = texts(ENDPOINTS.validate(found))
    assert "subsets[0].addresses[0].ip" in messages[0]
    assert "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`" in messages
    assert found["subsets"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]


def test_too_many_addresses_are_refused_without_a_look_at_each() -> None:
    service = {"spec": {"clusterIPs": [f"a{number}" for number in range(10_000)]}}
    with counted_calls() as calls:
        [error] = address_errors(service)
    assert calls.count < 100
    assert str(error).endswith("may only hold up to 2 values")

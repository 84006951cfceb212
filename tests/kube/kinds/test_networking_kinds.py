"""Ingresses, classes, network policies, addresses; webhook configurations and APIServices."""

from __future__ import annotations

from typing import Any

from karmada.kube.kinds import admissionregistration as webhooks
from karmada.kube.kinds import networking
from karmada.kube.kinds.apiregistration import API_SERVICE
from tests.kube.kinds.texts import texts
from tests.support.cases import cases


def path(**fields: Any) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    return {"path": "/", "pathType": "Prefix", "backend": backend, **fields}


def ingress(*paths: dict[str, Any], **spec: Any) -> dict[str, Any]:
    rules = [{"host": "a.example", "http": {"paths": list(paths or (path(),))}}]
    return {"metadata": {"name": "i"}, "spec": {"rules": rules, **spec}}


def test_a_plain_ingress_is_valid() -> None:
    assert networking.INGRESS.validate(ingress()) == []


@cases(
    (ingress(rules=[]), "either `defaultBackend` or `rules` must be specified"),
    (
        ingress(path(pathType=None)),
        "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
    ),
    (
        ingress(path(pathType="Odd")),
        'Unsupported value: "Odd": supported values: "Exact", "ImplementationSpecific", "Prefix"',
    ),
    (ingress(path(path="x")), 'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'),
    (ingress(path(path="/a//b")), "must not contain '//'"),
    (ingress(path(backend={})), "resource or service backend is required"),
    (ingress(path(backend={"service": {"name": "web"}})), "port name or number is required"),
    (ingress(rules=[{"host": "1.2.3.4"}]), "must be a DNS name, not an IP address"),
    (ingress(rules=[{"host": "a.*.b"}]), "a wildcard DNS-1123 subdomain must start with '*.'"),
    (ingress(rules=[{"http": {"paths": []}}]), "spec.rules[0].http.paths: Required value"),
)
def test_ingress_rules(found: dict[str, Any], wanted: str) -> None:
    messages = texts(networking.INGRESS.validate(found))
    assert any(wanted in message for message in messages), messages


def test_an_ingress_class_has_a_scope_and_keeps_its_controller() -> None:
    found = {"metadata": {}, "spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n"}}}
    networking.INGRESS_CLASS.default(found)
    assert found["spec"]["parameters"]["scope"] == "Cluster"
    assert networking.INGRESS_CLASS.validate(found) == []
    other = {"metadata": {}, "spec": {"controller": "example.com/d"}}
    wanted = 'spec.controller: Invalid value: "example.com/d": field is immutable'
    assert texts(networking.INGRESS_CLASS.validate_update(other, found)) == [wanted]


def policy(**spec: Any) -> dict[str, Any]:
    found = {"metadata": {}, "spec": {"podSelector": {}, **spec}}
    networking.NETWORK_POLICY.default(found)
    return found


def test_a_network_policy_is_about_ingress_unless_it_says_more() -> None:
    assert policy()["spec"]["policyTypes"] == ["Ingress"]
    found = policy(egress=[{"ports": [{"port": 53}]}])
    assert found["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert found["spec"]["egress"][0]["ports"][0]["protocol"] == "TCP"
    assert networking.NETWORK_POLICY.validate(found) == []


@cases(
    ({"ingress": [{"from": [{}]}]}, "spec.ingress[0].from[0]: Required value: must specify a peer"),
    (
        {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]},
        "may not specify both ipBlock and another peer",
    ),
    ({"ingress": [{"from": [{"ipBlock": {"cidr": "ten"}}]}]}, "must be a valid CIDR value"),
    (
        {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/9"]}}]}]},
        "must be a strict subset of `cidr`",
    ),
    ({"ingress": [{"ports": [{"port": 80, "endPort": 70}]}]}, "must be greater than or equal to `port`"),
    ({"policyTypes": ["Odd"]}, 'Unsupported value: "Odd"'),
)
def test_network_policy_rules(spec: dict[str, Any], wanted: str) -> None:
    assert any(wanted in text for text in texts(networking.NETWORK_POLICY.validate(policy(**spec))))


def test_an_ip_address_is_named_by_itself() -> None:
    name_errors = networking.IP_ADDRESS.name_errors
    assert name_errors is not None
    assert name_errors("10.0.0.1") == []
    assert name_errors("2001:DB8::1") == ["must be in canonical form"]
    assert name_errors("web") != []


def webhook(**fields: Any) -> dict[str, Any]:
    entry = {
        "name": "a.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "s", "namespace": "ns"}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        **fields,
    }
    found = {"metadata": {"name": "w"}, "webhooks": [entry]}
    webhooks.MUTATING_WEBHOOKS.default(found)
    return found


def test_webhook_defaults() -> None:
    [entry] = webhook()["webhooks"]
    assert (entry["failurePolicy"], entry["matchPolicy"], entry["timeoutSeconds"]) == ("Fail", "Equivalent", 10)
    assert (entry["namespaceSelector"], entry["objectSelector"], entry["reinvocationPolicy"]) == ({}, {}, "Never")
    assert entry["clientConfig"]["service"]["port"] == 443
    assert entry["rules"][0]["scope"] == "*"
    assert webhooks.MUTATING_WEBHOOKS.validate(webhook()) == []


@cases(
    ({"name": "a.b"}, "should be a domain with at least three segments separated by dots"),
    ({"sideEffects": None}, "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"),
    (
        {"admissionReviewVersions": []},
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ),
    ({"timeoutSeconds": 31}, "the timeout value must be between 1 and 30 seconds"),
    ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
    (
        {"clientConfig": {"url": "http://x"}},
        "'https' is the only allowed URL scheme; desired format: https://host[/path]",
    ),
    (
        {"rules": [{"operations": ["*", "CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]},
        "if '*' is present, must not specify other operations",
    ),
    ({"failurePolicy": "Maybe"}, 'Unsupported value: "Maybe": supported values: "Fail", "Ignore"'),
)
def test_webhook_rules(fields: dict[str, Any], wanted: str) -> None:
    messages = texts(webhooks.MUTATING_WEBHOOKS.validate(webhook(**fields)))
    assert any(wanted in message for message in messages), messages


def api_service(name: str = "v1alpha1.example.com", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "group": "example.com",
            "version": "v1alpha1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            **spec,
        },
    }


def test_a_local_api_service_is_available_at_once() -> None:
    found = api_service()
    API_SERVICE.prepare_create(found)
    [condition] = found["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")
    assert condition["message"] == "Local APIServices are always available"
    assert API_SERVICE.validate(found) == []


def test_a_remote_api_service_waits_to_be_seen() -> None:
    found = api_service(service={"name": "s", "namespace": "ns"})
    API_SERVICE.default(found)
    API_SERVICE.prepare_create(found)
    assert found["status"] == {}
    assert found["spec"]["service"]["port"] == 443


def test_an_api_service_is_named_by_what_it_serves() -> None:
    [error] = API_SERVICE.validate(api_service("x"))
    assert (
        str(error) == 'metadata.name: Invalid value: "x": must be `spec.version+"."+spec.group`: "v1alpha1.example.com"'
    )

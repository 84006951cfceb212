from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.cases import cases

VALIDATE = "validate-multiclusteringress"
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def ingress(status: Obj | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "networking.karmada.io/v1alpha1",
        "kind": "MultiClusterIngress",
        "metadata": {"name": "i", "namespace": "default"},
        "spec": spec,
        **({"status": status} if status else {}),
    }


def backed(backend: Obj) -> Obj:
    return ingress(defaultBackend=backend)


def routed(path: str, kind: str | None) -> Obj:
    entry = {"path": path, "backend": BACKEND, **({"pathType": kind} if kind else {})}
    return ingress(rules=[{"http": {"paths": [entry]}}])


def served(**port: Any) -> Obj:
    return backed({"service": {"name": "web", "port": port}})


RULE = "spec.rules[0].http.paths[0]"


@cases(
    (backed(BACKEND), ""),
    (ingress(), "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"),
    (
        backed({**BACKEND, "resource": {}}),
        'spec.defaultBackend: Invalid value: "": cannot set both resource and service backends',
    ),
    (backed({}), "spec.defaultBackend: Required value: resource or service backend is required"),
    (
        backed({"resource": {"apiGroup": "A", "kind": "", "name": "a/b"}}),
        f'[spec.defaultBackend.resource.apiGroup: Invalid value: "A": {SUBDOMAIN}, '
        "spec.defaultBackend.resource.kind: Required value: kind is required, "
        "spec.defaultBackend.resource.name: Invalid value: \"a/b\": may not contain '/']",
    ),
    (
        served(name="http", number=80),
        'spec.defaultBackend: Invalid value: "": cannot set both port name & port number',
    ),
    (served(), "spec.defaultBackend: Required value: port name or number is required"),
    (
        served(number=65536),
        "spec.defaultBackend.service.port.number: Invalid value: 65536: must be between 1 and 65535, inclusive",
    ),
    (
        served(name="--"),
        '[spec.defaultBackend.service.port.name: Invalid value: "--": must contain at least one letter (a-z), '
        'spec.defaultBackend.service.port.name: Invalid value: "--": must not contain consecutive hyphens, '
        'spec.defaultBackend.service.port.name: Invalid value: "--": must not begin or end with a hyphen]',
    ),
    (
        ingress(rules=[{"host": "10.0.0.1"}]),
        'spec.rules[0].host: Invalid value: "10.0.0.1": must be a DNS name, not an IP address',
    ),
    (ingress(rules=[{"host": "*.example.com"}]), ""),
    (ingress(rules=[{"host": "A"}]), f'spec.rules[0].host: Invalid value: "A": {SUBDOMAIN}'),
    (ingress(rules=[{"http": {"paths": []}}]), "spec.rules[0].http.paths: Required value"),
    (routed("/", None), f"{RULE}.pathType: Required value: pathType must be specified"),
    (
        routed("/", "Some"),
        f'{RULE}.pathType: Unsupported value: "Some": supported values: "Exact", "ImplementationSpecific", "Prefix"',
    ),
    (routed("a", "Exact"), f'{RULE}.path: Invalid value: "a": must be an absolute path'),
    (
        routed("//a/./b/..", "Prefix"),
        f"[{RULE}.path: Invalid value: \"//a/./b/..\": must not contain '//', "
        f"{RULE}.path: Invalid value: \"//a/./b/..\": must not contain '/./', "
        f"{RULE}.path: Invalid value: \"//a/./b/..\": cannot end with '/..']",
    ),
    (routed("", "ImplementationSpecific"), ""),
    (
        routed("a", "ImplementationSpecific"),
        f'{RULE}.path: Invalid value: "a": must be an absolute path',
    ),
    (
        ingress(defaultBackend=BACKEND, tls=[{"hosts": ["A"], "secretName": "S"}]),
        f'[spec.tls[0].hosts[0]: Invalid value: "A": {SUBDOMAIN}, '
        f'spec.tls[0].secretName: Invalid value: "S": {SUBDOMAIN}]',
    ),
    (
        ingress(defaultBackend=BACKEND, ingressClassName="A"),
        f'spec.ingressClassName: Invalid value: "A": {SUBDOMAIN}',
    ),
)
async def test_an_ingress_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused(VALIDATE, obj) == text


async def test_an_update_looks_at_the_load_balancer_too(refused: Any) -> None:
    bad = ingress({"loadBalancer": {"ingress": [{"hostname": "10.0.0.1"}]}}, defaultBackend=BACKEND)
    assert await refused(VALIDATE, bad) == ""
    assert await refused(VALIDATE, bad, ingress(defaultBackend=BACKEND)) == (
        'status.loadBalancer.ingress[0].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address'
    )

from __future__ import annotations

from typing import Any

from karmada.kube.objects.types import Obj
from tests.support.cases import cases

VALIDATE = "validate-multiclusterservice"
ID = "multiclusterservice.karmada.io/permanent-id"


def service(name: str = "web", status: Obj | None = None, **spec: Any) -> Obj:
    return {
        "apiVersion": "networking.karmada.io/v1alpha1",
        "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"types": ["CrossCluster"], **spec},
        **({"status": status} if status else {}),
    }


LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
RANGE = "must be between 1 and 65535, inclusive"


@cases(
    (service(), ""),
    (service(types=[]), ""),
    (service("1web"), f'metadata.name: Invalid value: "1web": {LABEL_1035}'),
    (service(ports=[{"port": 0}]), f"spec.ports[0].port: Invalid value: 0: {RANGE}"),
    (
        service(ports=[{"name": "a", "port": 1}, {"name": "a", "port": 65536}]),
        f'[spec.ports[1].name: Duplicate value: "a", spec.ports[1].port: Invalid value: 65536: {RANGE}]',
    ),
    (service(ports=[{"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 8080}]), ""),
    (
        service(ports=[{"port": 80, "targetPort": 0}]),
        f"spec.ports[0].targetPort: Invalid value: 0: {RANGE}",
    ),
    (service(types=["Direct"]), 'spec.types[0]: Invalid value: "Direct": ExposureType Error'),
    (
        service(types=["CrossCluster", "LoadBalancer"]),
        'spec.types: Invalid value: ["CrossCluster","LoadBalancer"]: '
        "MultiClusterService types should not contain more than one type",
    ),
    (service(types=["CrossCluster", "CrossCluster"]), ""),
    (
        service(providerClusters=[{"name": ""}], consumerClusters=[{"name": "m" * 49}]),
        '[spec.range.providerClusters[0]: Invalid value: "": must be not empty, '
        f'spec.range.consumerClusters[0]: Invalid value: "{"m" * 49}": must be no more than 48 characters]',
    ),
)
async def test_a_service_is_refused_for(obj: Obj, text: str, refused: Any) -> None:
    assert await refused(VALIDATE, obj) == text


async def test_types_cannot_change(refused: Any) -> None:
    text = await refused(VALIDATE, service(types=["LoadBalancer"]), service())
    assert text == 'spec.types: Invalid value: ["CrossCluster"]: MultiClusterService types are immutable'


async def test_an_update_looks_at_the_load_balancer_too(refused: Any) -> None:
    bad = service(status={"loadBalancer": {"ingress": [{"ip": "here"}, {"hostname": "10.0.0.1"}]}})
    assert await refused(VALIDATE, bad) == ""
    assert await refused(VALIDATE, bad, service()) == (
        '[status.loadBalancer.ingress[0].ip: Invalid value: "here": must be a valid IP address, '
        "(e.g. 10.9.8.7 or 2001:db8::ffff), "
        'status.loadBalancer.ingress[1].hostname: Invalid value: "10.0.0.1": must be a DNS name, not an IP address]'
    )


def test_a_service_gets_a_permanent_id_and_a_range(completed: Any) -> None:
    made = completed("mutate-multiclusterservice", service())
    assert made["metadata"]["labels"] == {ID: "id-1"}
    assert made["spec"]["range"] == {}
    assert completed("mutate-multiclusterservice", made, made) == made

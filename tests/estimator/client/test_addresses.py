from __future__ import annotations

from typing import Any

import pytest

from karmada.estimator.client.addresses import address_of, addresses
from karmada.estimator.client.options import Whereabouts
from karmada.estimator.terms import EstimateError
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import ServiceUnavailable
from tests.support.cases import cases
from tests.support.estimators import fake_estimators

EXTERNAL = {"type": "ExternalName", "externalName": "estimator.example"}


def service(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "karmada-scheduler-estimator-m1"}, "spec": spec}


@cases(
    ({**EXTERNAL, "ports": [{"port": 10352, "targetPort": 31000}]}, "estimator.example:31000"),
    ({**EXTERNAL, "ports": [{"port": 1}, {"port": 10352, "targetPort": 10352}]}, "estimator.example:10352"),
    ({**EXTERNAL, "ports": [{"port": 10352}]}, "estimator.example:10352"),
    ({"type": "ExternalName", "externalName": "fd00::1", "ports": [{"port": 10352}]}, "[fd00::1]:10352"),
)
def test_a_service_of_the_control_plane_leads_to_its_external_name(spec: Any, address: str) -> None:
    assert address_of(service(**spec), 10352) == address


@cases(
    ({"type": "ClusterIP"}, EstimateError, 'unsupported service type "ClusterIP"'),
    ({}, EstimateError, 'unsupported service type "ClusterIP"'),
    ({"type": "NodePort"}, EstimateError, 'unsupported service type "NodePort"'),
    (
        {**EXTERNAL, "ports": [{"port": 1}]},
        ServiceUnavailable,
        'no service port 10352 found for service "karmada-scheduler-estimator-m1"',
    ),
    (EXTERNAL, ServiceUnavailable, 'no service port 10352 found for service "karmada-scheduler-estimator-m1"'),
    (
        {**EXTERNAL, "ports": [{"port": 10352, "targetPort": "grpc"}]},
        EstimateError,
        'ExternalName service "karmada-scheduler-estimator-m1" should have int target port',
    ),
)
def test_any_other_service_is_refused(spec: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as refused:
        address_of(service(**spec), 10352)
    assert str(refused.value) == text


async def found(client: Client, **where: Any) -> list[str]:
    return await addresses(client, "m1", Whereabouts(**where))


async def test_without_a_service_in_the_control_plane_it_is_found_in_the_host_cluster() -> None:
    async with fake_estimators() as fleet:
        assert await found(fleet.client) == [
            "karmada-scheduler-estimator-m1.karmada-system.svc.cluster.local:10352",
            "karmada-scheduler-estimator-m1.karmada-system.svc:10352",
        ]
        assert (await found(fleet.client, namespace="ns", prefix="est", port=7))[1] == "est-m1.ns.svc:7"
        await fleet.serve("m1", {**EXTERNAL, "ports": [{"port": 10352, "targetPort": 4}]})
        assert await found(fleet.client) == ["estimator.example:4"]

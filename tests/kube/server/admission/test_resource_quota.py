"""Quotas: what counts, what is in scope, and that nobody gets more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.kinds import quota
from karmada.kube.kinds.pod_amounts import pod_resources
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.quantity import Quantity
from karmada.kube.server.admission.resource_quota import RESERVATION_SECONDS, ResourceQuota
from tests.support.cases import cases

AttributesOf = Callable[..., Any]


def pod(cpu: str | None = None, phase: str = "Pending", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    return {
        "metadata": {},
        "spec": {"containers": [{"name": "c1", "resources": resources}], **spec},
        "status": {"phase": phase},
    }


def put_quota(reader: Any, hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = {"hard": dict(hard), "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
    obj = {"metadata": {"name": "q", "namespace": "ns"}, "spec": {"hard": hard, **spec}, "status": status}
    reader.put("", "resourcequotas", obj)
    return obj


def store(reader: Any, plural: str, name: str, obj: dict[str, Any]) -> None:
    obj["metadata"] = {"name": name, "namespace": "ns"}
    reader.put("", plural, obj)


async def check(plugin: ResourceQuota, attributes: Any) -> None:
    assert plugin.handles(attributes)
    await plugin.validate(attributes)


async def refused(plugin: ResourceQuota, attributes: Any) -> str:
    with pytest.raises(Forbidden) as caught:
        await check(plugin, attributes)
    return caught.value.message


# --- what counts


@cases(
    (("", "configmaps"), {}, {"configmaps": "1", "count/configmaps": "1"}),
    (("apps", "deployments"), {}, {"count/deployments.apps": "1"}),
    (
        ("", "pods"),
        pod("500m"),
        {"pods": "1", "count/pods": "1", "cpu": "500m", "requests.cpu": "500m"},
    ),
    (("", "pods"), pod("500m", phase="Succeeded"), {"count/pods": "1"}),
    (
        ("", "services"),
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 1}, {"port": 2}]}},
        {"services": "1", "count/services": "1", "services.loadbalancers": "1", "services.nodeports": "2"},
    ),
    (
        ("", "persistentvolumeclaims"),
        {"metadata": {}, "spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}},
        {
            "persistentvolumeclaims": "1",
            "count/persistentvolumeclaims": "1",
            "requests.storage": "5Gi",
            "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        },
    ),
)
def test_what_an_object_counts_for(resource: tuple[str, str], obj: dict[str, Any], wanted: dict[str, str]) -> None:
    found = quota.usage(GroupResource(*resource), obj)
    assert {name: str(amount) for name, amount in found.items()} == wanted


def test_extended_resources_count_as_requests() -> None:
    gpu = {"resources": {"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}}
    found = quota.usage(quota.PODS, {"metadata": {}, "spec": {"containers": [gpu]}})
    assert found["requests.nvidia.com/gpu"] == Quantity.of(2)


def test_a_pod_counts_for_its_peak() -> None:
    def container(cpu: str, **fields: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **fields}

    spec: dict[str, Any] = {
        "containers": [container("1"), container("1")],
        "initContainers": [container("500m", restartPolicy="Always"), container("3")],
        "overhead": {"cpu": "100m"},
    }
    assert str(pod_resources(spec, "requests")["cpu"]) == "3600m"
    spec["initContainers"].pop()
    assert str(pod_resources(spec, "requests")["cpu"]) == "2600m"


@cases(
    (["BestEffort"], pod(), True),
    (["BestEffort"], pod("1"), False),
    (["NotBestEffort"], pod("1"), True),
    (["Terminating"], pod(activeDeadlineSeconds=1), True),
    (["NotTerminating"], pod(activeDeadlineSeconds=1), False),
    (["Terminating", "BestEffort"], pod("1", activeDeadlineSeconds=1), False),
)
def test_scopes(scopes: list[str], obj: dict[str, Any], wanted: bool) -> None:
    assert quota.in_scope({"spec": {"scopes": scopes}}, quota.PODS, obj) is wanted


@cases(("In", True), ("NotIn", False), ("Exists", True), ("DoesNotExist", False))
def test_a_scope_may_name_priority_classes(operator: str, wanted: bool) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": ["high"]}
    found = {"spec": {"scopeSelector": {"matchExpressions": [expression]}}}
    assert quota.in_scope(found, quota.PODS, pod(priorityClassName="high")) is wanted


# --- admission


async def test_without_quotas_nothing_is_refused(reader: Any, attributes_of: AttributesOf) -> None:
    await check(ResourceQuota(reader), attributes_of("CREATE", "configmaps", {}))


async def test_a_request_beyond_the_quota_is_refused_with_usage_and_limit(
    reader: Any, attributes_of: AttributesOf
) -> None:
    put_quota(reader, {"pods": "10", "requests.cpu": "4"}, {"pods": "10", "requests.cpu": "4"})
    assert await refused(ResourceQuota(reader), attributes_of("CREATE", "pods", pod("1"))) == (
        'pods "x" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1, used: pods=10,requests.cpu=4, '
        "limited: pods=10,requests.cpu=4"
    )


async def test_only_what_is_exceeded_is_named(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"pods": "10", "requests.cpu": "4"}, {"pods": "1", "requests.cpu": "4"})
    message = await refused(ResourceQuota(reader), attributes_of("CREATE", "pods", pod("1")))
    assert message.endswith("requested: requests.cpu=1, used: requests.cpu=4, limited: requests.cpu=4")


async def test_pods_must_say_what_is_limited(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"limits.cpu": "1", "requests.memory": "1Gi", "pods": "5"})
    assert await refused(ResourceQuota(reader), attributes_of("CREATE", "pods", pod())) == (
        'pods "x" is forbidden: failed quota: q: must specify limits.cpu for: c1; requests.memory for: c1'
    )


async def test_a_quota_that_nobody_counted_yet_lets_nothing_through(reader: Any, attributes_of: AttributesOf) -> None:
    found = put_quota(reader, {"pods": "5"})
    found["status"] = {}
    assert (await refused(ResourceQuota(reader), attributes_of("CREATE", "pods", pod()))).endswith(
        "status unknown for quota: q, resources: pods"
    )
    await check(ResourceQuota(reader), attributes_of("CREATE", "services", {"spec": {}}))


async def test_what_is_there_counts_even_if_the_status_lags(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"configmaps": "2"})
    store(reader, "configmaps", "a", {})
    store(reader, "configmaps", "b", {})
    assert "used: configmaps=2" in await refused(ResourceQuota(reader), attributes_of("CREATE", "configmaps", {}))


async def test_two_creates_in_flight_do_not_share_the_last_place(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"configmaps": "1"})
    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="a"))
    assert "used: configmaps=1" in await refused(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_a_promise_that_was_kept_counts_once(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"configmaps": "2"})
    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="a"))
    store(reader, "configmaps", "a", {})
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))
    assert "exceeded" in await refused(plugin, attributes_of("CREATE", "configmaps", {}, name="c"))


async def test_creates_in_flight_count_beside_what_the_status_says(reader: Any, attributes_of: AttributesOf) -> None:
    """The status knows of an object that this server has not seen yet."""
    put_quota(reader, {"configmaps": "2"}, {"configmaps": "1"})
    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="a"))
    assert "used: configmaps=2" in await refused(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_a_write_that_failed_gives_its_place_back(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"configmaps": "1"})
    plugin = ResourceQuota(reader, FakeClock())
    first = attributes_of("CREATE", "configmaps", {}, name="a")
    await check(plugin, first)
    plugin.finish(first, stored=False)
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_a_write_with_unknown_outcome_releases_its_reservation_in_time(
    reader: Any, attributes_of: AttributesOf
) -> None:
    put_quota(reader, {"configmaps": "1"})
    clock = FakeClock()
    plugin = ResourceQuota(reader, clock)
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="a"))
    await clock.advance(RESERVATION_SECONDS)
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_an_update_of_what_is_deleted_meanwhile_takes_no_place(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"requests.storage": "5Gi"})

    def claim(size: str) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": "1"}, "spec": {"resources": {"requests": {"storage": size}}}}

    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("UPDATE", "persistentvolumeclaims", claim("5Gi"), claim("3Gi"), name="gone"))
    await check(plugin, attributes_of("CREATE", "persistentvolumeclaims", claim("5Gi"), name="b"))


async def test_a_dry_run_takes_no_place(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"configmaps": "1"})
    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="a", dry_run=True))
    await check(plugin, attributes_of("CREATE", "configmaps", {}, name="b"))


async def test_an_update_is_charged_for_the_difference(reader: Any, attributes_of: AttributesOf) -> None:
    put_quota(reader, {"requests.storage": "5Gi"}, {"requests.storage": "3Gi"})

    def claim(size: str) -> dict[str, Any]:
        return {"metadata": {}, "spec": {"resources": {"requests": {"storage": size}}}}

    plugin = ResourceQuota(reader, FakeClock())
    await check(plugin, attributes_of("UPDATE", "persistentvolumeclaims", claim("5Gi"), claim("3Gi"), name="a"))
    message = await refused(
        plugin, attributes_of("UPDATE", "persistentvolumeclaims", claim("9Gi"), claim("3Gi"), name="a")
    )
    assert "requested: requests.storage=6Gi" in message
    await check(plugin, attributes_of("UPDATE", "persistentvolumeclaims", claim("1Gi"), claim("3Gi"), name="a"))


async def test_quotas_do_not_look_at_reviews_or_subresources(reader: Any, attributes_of: AttributesOf) -> None:
    plugin = ResourceQuota(reader)
    assert not plugin.handles(attributes_of("CREATE", "localsubjectaccessreviews", {}))
    assert not plugin.handles(attributes_of("CREATE", "pods", {}, subresource="eviction"))
    assert not plugin.handles(attributes_of("UPDATE", "configmaps", {}, {}))
    assert not plugin.handles(attributes_of("CREATE", "nodes", {}))
    assert plugin.handles(attributes_of("UPDATE", "pods", {}, {}, subresource="resize"))

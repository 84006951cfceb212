"""Credentials that are broken, and mended: the Cluster's condition shows both, at once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from karmada.api.cluster import Cluster
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.meta import get_condition
from karmada.kube.runtime.controller import Controller
from karmada.kube.runtime.keys import Key
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from tests.controllers.cluster_status.status_plane import NAMESPACE, FakeMember, Plane, brief, credentials
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fleet import encoded

READY = ("True", "ClusterReady")
FAILED = ("False", "StatusCollectionFailed")
NO_KUBECONFIG = encoded("apiVersion: v1\nclusters: [x]\nusers: []\ncontexts: []\n")

BROKEN: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"caBundle": encoded(b"\x30\x82\xff\xfe\x00")}, {}, "the CA bundle holds no certificates in PEM"),
    ({"token": encoded("a\nb")}, {}, "the token has characters that no token can have"),
    ({"kubeconfig": NO_KUBECONFIG}, {}, "clusters[0] must have fields"),
]


@pytest.mark.parametrize(("data", "spec", "why"), BROKEN)
async def test_broken_credentials_are_a_condition(
    plane: Plane, member: FakeMember, data: dict[str, Any], spec: dict[str, Any], why: str
) -> None:
    await plane.join("m1", member, secret={**credentials(member), **data}, **spec)
    status = await plane.look("m1")
    assert brief(status, "Ready") == FAILED
    ready = get_condition(status["conditions"], "Ready")
    assert ready is not None
    assert why in ready["message"]


@pytest.mark.parametrize(("data", "spec", "why"), BROKEN)
async def test_a_ready_cluster_whose_credentials_break_does_not_stay_ready(
    plane: Plane, member: FakeMember, data: dict[str, Any], spec: dict[str, Any], why: str
) -> None:
    await plane.join("m1", member)
    assert await plane.ready("m1") == READY
    await plane.client.patch(SECRETS, "m1", NAMESPACE, {"data": data})
    handle = plane.context.members.get("m1")
    await eventually(lambda: handle.trouble)
    await plane.look("m1")
    await plane.clock.advance(30)
    status = await plane.look("m1")
    assert brief(status, "Ready") == FAILED
    assert why in str(status["conditions"])


async def test_a_page_of_megabytes_is_no_health(plane: Plane, member: FakeMember) -> None:
    answer = member.gate.run

    async def flood(request: Request, then: Any) -> Result:
        return RawResult(bytes(1 << 20)) if request.info.path == "/readyz" else await answer(request, then)

    member.gate.run = flood  # type: ignore[method-assign,assignment]
    await plane.join("m1", member)
    assert await plane.ready("m1") == ("False", "ClusterNotReachable")


@cases(5, [5], [{"metadata": {"name": "x"}, "versions": [{}]}], [{"metadata": 5, "versions": [{"version": 1}]}])
async def test_discovery_that_makes_no_sense_does_not_hide_that_a_member_died(
    items: Any, plane: Plane, member: FakeMember
) -> None:
    answer = member.gate.run

    async def babble(request: Request, then: Any) -> Result:
        if request.info.path not in ("/api", "/apis"):
            return await answer(request, then)
        return RawResult(orjson.dumps({"kind": "APIGroupDiscoveryList", "items": items}))

    member.gate.run = babble  # type: ignore[method-assign,assignment]
    await plane.join("m1", member)
    status = await plane.look("m1")
    assert brief(status, "Ready") == READY
    assert brief(status, "CompleteAPIEnablements") == ("False", "Empty")
    await member.stop()
    await plane.look("m1")
    await plane.clock.advance(30)
    assert await plane.ready("m1") == ("False", "ClusterNotReachable")


async def test_a_repaired_secret_is_reconciled_at_once(plane: Plane, member: FakeMember) -> None:
    controller = Controller(plane.status, plane.informers, clock=plane.clock)
    await controller.start()

    def ready() -> tuple[str, str]:
        cluster = plane.informers.of(Cluster.gvr).get(Key("", "m1")) or {}
        return brief(cluster.get("status") or {}, "Ready")

    try:
        await plane.join("m1", member, secret={"token": encoded("a\nb"), "caBundle": encoded("x")})
        await eventually(lambda: ready() == FAILED)
        await eventually(lambda: controller.queue.idle)
        requested = member.gate.requests["/readyz"]
        await plane.client.patch(SECRETS, "m1", NAMESPACE, {"data": credentials(member)})
        await eventually(lambda: member.gate.requests["/readyz"] > requested)
    finally:
        await controller.stop(grace=0)

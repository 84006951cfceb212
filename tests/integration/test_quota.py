"""ResourceQuota and LimitRange, seen by those who create."""

from __future__ import annotations

import asyncio
from typing import Any

from karmada.kube.server.app import ApiServer
from tests.integration.samples import CORE, PODS, SECRETS, interleave, ok, patch, pod, refused
from tests.support.wire import Http

QUOTAS = f"{CORE}/resourcequotas"


async def quota(http: Http, hard: dict[str, str], used: dict[str, str] | None = None) -> None:
    """A quota whose status says it is in force."""
    ok(await http("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}), 201)
    status = {"hard": hard, "used": used or dict.fromkeys(hard, "0")}
    ok(await patch(http, f"{QUOTAS}/q/status", {"status": status}))


def sized(name: str, **resources: Any) -> Any:
    body = pod(name)
    body["spec"]["containers"][0]["resources"] = resources
    return body


async def test_a_quota_is_used_up_and_then_refuses(http: Http) -> None:
    await quota(http, {"pods": "1", "requests.cpu": "4"})
    ok(await http("POST", PODS, sized("a", requests={"cpu": "1"})), 201)
    status = refused(await http("POST", PODS, sized("b", requests={"cpu": "1"})), 403, "Forbidden")
    assert status["message"] == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )
    refused(await http("POST", PODS, pod("c")), 403, "Forbidden", "failed quota: q: must specify requests.cpu for: c")


async def test_a_quota_without_a_status_refuses_until_it_is_known(http: Http) -> None:
    ok(await http("POST", QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}), 201)
    refused(await http("POST", PODS, pod("a")), 403, "Forbidden", "status unknown for quota: q, resources: pods")


async def test_a_dry_run_uses_up_nothing(http: Http) -> None:
    await quota(http, {"count/secrets": "1"})
    for name in ("a", "b", "c"):
        ok(await http("POST", f"{SECRETS}?dryRun=All", {"metadata": {"name": name}}), 201)
    ok(await http("POST", SECRETS, {"metadata": {"name": "a"}}), 201)


async def test_a_create_that_fails_gives_its_share_back(http: Http) -> None:
    await quota(http, {"count/secrets": "2"})
    ok(await http("POST", SECRETS, {"metadata": {"name": "a"}}), 201)
    for _ in range(4):
        refused(await http("POST", SECRETS, {"metadata": {"name": "a"}}), 409, "AlreadyExists")
    ok(await http("POST", SECRETS, {"metadata": {"name": "b"}}), 201)
    refused(await http("POST", SECRETS, {"metadata": {"name": "c"}}), 403, "Forbidden", "exceeded quota: q")


async def test_concurrent_creates_do_not_exceed_a_quota(http: Http, server: ApiServer) -> None:
    await quota(http, {"count/secrets": "3"})
    interleave(server)
    bodies = [{"metadata": {"name": f"s{i}"}} for i in range(9)]
    codes = [answer.code for answer in await asyncio.gather(*(http("POST", SECRETS, body) for body in bodies))]
    assert codes.count(201) == 3
    assert set(codes) <= {201, 403, 409}


async def test_a_limit_range_fills_in_and_refuses(http: Http) -> None:
    limit = {"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}
    ok(await http("POST", f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}), 201)
    made = ok(await http("POST", PODS, pod("a")), 201)
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    refused(
        await http("POST", PODS, sized("b", limits={"cpu": "2"})),
        403,
        "Forbidden",
        "maximum cpu usage per Container is 1, but limit is 2",
    )

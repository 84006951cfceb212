from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from karmada.kube.runtime.health import Health
from karmada.kube.runtime.metrics import Metrics
from karmada.kube.runtime.serving import ObservabilityServer
from tests.support.cases import cases


async def not_yet() -> bool:
    return False


@pytest.fixture
def health() -> Health:
    health = Health()
    health.add_ready("informer-sync", not_yet)
    return health


async def test_liveness_does_not_wait_for_readiness(health: Health) -> None:
    assert await health.report("livez") == (200, "ok")
    assert await health.report("healthz") == (200, "ok")
    code, body = await health.report("readyz")
    assert code == 500
    assert body == "[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"


async def test_checks_can_be_seen_excluded_and_requested_one_by_one(health: Health) -> None:
    code, body = await health.report("readyz", verbose=True, exclude=["informer-sync"])
    assert (code, body) == (200, "[+]ping ok\n[+]informer-sync excluded: ok\nreadyz check passed\n")
    assert await health.single("readyz", "ping") == (200, "ok")
    assert (await health.single("readyz", "informer-sync")).code == 500
    assert (await health.single("livez", "informer-sync")).code == 404
    health.remove("informer-sync")
    assert await health.ok()


async def test_a_check_that_fails_to_run_counts_as_failed(health: Health) -> None:
    def broken() -> bool:
        raise RuntimeError("x")

    health.add_live("broken", broken)
    assert not await health.ok("livez")


@pytest.fixture
async def server(health: Health) -> AsyncIterator[str]:
    server = ObservabilityServer(health, Metrics(), host="127.0.0.1")
    await server.start()
    yield f"http://127.0.0.1:{server.port}"
    await server.stop()


@cases(
    ("/livez", 200, "ok"),
    ("/readyz", 500, "[-]informer-sync failed"),
    ("/readyz?exclude=informer-sync&verbose", 200, "readyz check passed"),
    ("/readyz/ping", 200, "ok"),
    ("/readyz/nothing", 404, "404 page not found"),
    ("/metrics", 200, "# TYPE workqueue_adds_total counter"),
)
async def test_the_endpoints_answer(path: str, status: int, part: str, server: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(server + path) as response:
        assert response.status == status
        assert part in await response.text()

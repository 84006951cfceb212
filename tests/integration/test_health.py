"""Health pages, /version, /metrics and the list of paths."""

from __future__ import annotations

import re

import pytest

from karmada.kube.server.app import ApiServer
from tests.support.wire import Http

PAGES = ["healthz", "livez", "readyz"]


@pytest.mark.parametrize("page", PAGES)
async def test_a_healthy_server_says_ok(http: Http, page: str) -> None:
    answer = await http("GET", f"/{page}")
    assert (answer.code, answer.body) == (200, b"ok")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize("page", PAGES)
async def test_verbose_lists_every_check(http: Http, page: str) -> None:
    lines = (await http("GET", f"/{page}?verbose")).body.decode().splitlines()
    assert lines[0] == "[+]ping ok"
    assert {"[+]ping ok", "[+]log ok", "[+]etcd ok"} <= set(lines)
    assert lines[-1] == f"{page} check passed"
    assert ("[+]informer-sync ok" in lines) is (page == "readyz")
    assert ("[+]shutdown ok" in lines) is (page == "readyz")
    assert (await http("GET", f"/{page}/etcd")).body == b"ok"


async def test_a_failing_check_fails_its_page_until_it_is_excluded(http: Http, server: ApiServer) -> None:
    server.health.add("unicorn", lambda: False, pages=("livez",))
    answer = await http("GET", "/livez")
    lines = answer.body.decode().splitlines()
    assert answer.code == 500
    assert "[-]unicorn failed: reason withheld" in lines
    assert "[+]ping ok" in lines
    assert lines[-1] == "livez check failed"
    assert (await http("GET", "/livez/unicorn")).code == 500
    assert (await http("GET", "/healthz")).code == 200
    assert (await http("GET", "/livez?exclude=unicorn")).body == b"ok"
    verbose = (await http("GET", "/livez?verbose&exclude=unicorn&exclude=dragon")).body.decode().splitlines()
    assert "[+]unicorn excluded: ok" in verbose
    assert 'warn: some health checks cannot be excluded: no matches for "dragon"' in verbose


async def test_a_server_that_is_stopping_is_alive_but_not_ready(server: ApiServer, http: Http) -> None:
    server._ready = False
    answer = await http("GET", "/readyz")
    assert answer.code == 500
    assert b"[-]shutdown failed: reason withheld" in answer.body
    assert answer.body.endswith(b"readyz check failed\n")
    assert (await http("GET", "/livez")).code == 200


async def test_the_version_is_one_that_clients_can_parse(http: Http, server: ApiServer) -> None:
    version = (await http("GET", "/version", anonymous=True)).json()
    assert re.fullmatch(r"v\d+\.\d+\.\d+", version["gitVersion"])
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    assert re.fullmatch(r"[0-9a-f]{40}", version["gitCommit"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", version["buildDate"])
    assert (version["gitTreeState"], version["compiler"]) == ("clean", "gc")
    assert version["platform"].startswith("linux/")
    assert server.config.kubernetes_version == f"{version['major']}.{version['minor']}"


async def test_the_root_lists_what_is_served(http: Http) -> None:
    paths = (await http("GET", "/")).json()["paths"]
    assert paths == sorted(paths)
    assert {
        "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez", "/readyz", "/metrics",
        "/openapi/v2", "/openapi/v3", "/version", "/.well-known/openid-configuration", "/openid/v1/jwks",
    } <= set(paths)  # fmt: skip


async def test_metrics_are_prometheus_text_with_the_names_tools_scrape(http: Http) -> None:
    for _ in range(3):
        await http("GET", "/api/v1/namespaces/default")
    answer = await http("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.body.decode()
    series = (
        'apiserver_request_total{verb="GET",group="",version="v1",resource="namespaces",subresource="",'
        'scope="resource",code="200"} 3'
    )
    assert series in text.splitlines()
    assert 'apiserver_storage_objects{resource="namespaces"} 4' in text
    for name in (
        "apiserver_request_duration_seconds_bucket", "apiserver_current_inflight_requests",
        "apiserver_longrunning_requests", "process_resident_memory_bytes", "process_cpu_seconds_total",
        "event_loop_stalls_total",
    ):  # fmt: skip
        assert re.search(rf"^{name}\b", text, re.MULTILINE), name
    sample = re.compile(r'^[a-zA-Z_:][\w:]*(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? [0-9.eE+-]+(Inf)?$')
    assert all(line.startswith("#") or sample.match(line) for line in text.splitlines())


async def test_the_issuer_document_points_at_its_keys(http: Http) -> None:
    document = (await http("GET", "/.well-known/openid-configuration")).json()
    assert document["jwks_uri"].endswith("/openid/v1/jwks")
    assert (await http("GET", "/openid/v1/jwks")).code == 406
    keys = await http("GET", "/openid/v1/jwks", headers={"Accept": "application/jwk-set+json"})
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    assert keys.json()["keys"][0]["kid"]

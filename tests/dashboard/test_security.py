"""The rules that protect viewers from other sites, as tables."""

from __future__ import annotations

import pytest

from karmada.dashboard import security
from karmada.kube.objects.clock import FakeClock
from tests.support.cases import cases

HOST = {"Host": "karmada.example:5480"}


@cases(
    ("GET", {}, False),
    ("GET", {"Sec-Fetch-Site": "same-origin"}, False),
    ("GET", {"Sec-Fetch-Site": "none"}, False),
    ("GET", {"Sec-Fetch-Site": "cross-site"}, True),
    ("GET", {"Sec-Fetch-Site": "same-site"}, True),
    ("POST", {}, True),
    ("POST", {"Sec-Fetch-Site": "same-origin"}, False),
    ("POST", {"Origin": "https://karmada.example:5480"}, False),
    ("POST", {"Origin": "http://karmada.example:5480"}, True),
    ("POST", {"Origin": "https://karmada.example"}, True),
    ("POST", {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, True),
    ("POST", {"Origin": "null"}, True),
    ("DELETE", {"Sec-Fetch-Site": "none"}, True),
)
def test_a_request_that_another_site_causes_is_refused(method: str, headers: dict[str, str], refused: bool) -> None:
    assert bool(security.cross_site(method, {**HOST, **headers})) is refused


def test_a_link_from_elsewhere_opens_a_page_but_posts_nothing() -> None:
    assert not security.cross_site("GET", {**HOST, "Sec-Fetch-Site": "cross-site"}, navigation=True)
    assert security.cross_site("POST", {**HOST, "Sec-Fetch-Site": "cross-site"}, navigation=True)


@cases(
    ("localhost:5480", False),
    ("127.0.0.1:5480", False),
    ("[::1]:5480", False),
    ("10.2.3.4", False),
    ("karmada.example", False),
    ("KARMADA.example:5480", False),
    ("evil.example", True),
    ("localhost.evil.example", True),
    ("", True),
)
def test_a_name_that_is_not_the_dashboards_is_refused(header: str, refused: bool) -> None:
    assert bool(security.host_refused(header, {"karmada.example"})) is refused


def test_a_page_runs_and_loads_nothing_that_is_not_served_here() -> None:
    policy = security.content_security_policy("n0nce")
    assert "unsafe" not in policy
    assert "*" not in policy
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == "'self'"
    assert directives["style-src"] == "'self' 'nonce-n0nce'"
    assert directives["frame-ancestors"] == "'none'"


@cases(("karmada.example", True), ("localhost", False), ("127.0.0.1", False))
def test_only_what_is_not_this_machine_is_pinned_to_https(host: str, strict: bool) -> None:
    assert ("Strict-Transport-Security" in security.response_headers("n", host=host)) is strict


@cases(("token", True), ("", False), ("Token", False), ("tokén", False))
def test_a_token_matches_itself_only(given: str, matches: bool) -> None:
    assert security.csrf_matches("token", given) is matches


async def test_guesses_are_slowed_down_per_address_and_forgiven_with_time() -> None:
    clock = FakeClock()
    attempts = security.AttemptLimit(clock, burst=3, seconds=10.0, kept=2)
    for _ in range(3):
        assert attempts.wait("a") == 0
        attempts.failed("a")
    assert attempts.wait("a") == pytest.approx(10.0)
    assert attempts.wait("b") == 0
    await clock.advance(10.0)
    assert attempts.wait("a") == 0
    for address in ("b", "c"):
        attempts.failed(address)
    assert attempts.wait("a") == 0, "a bounded number of addresses is kept"

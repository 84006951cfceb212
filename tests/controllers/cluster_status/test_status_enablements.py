from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from karmada.controllers.cluster_status.enablements import EnablementReader, Enablements, condition, from_groups
from karmada.kube.client.config import Material, RestConfig
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from tests.controllers.cluster_status.status_plane import TOKEN, FakeMember
from tests.support.cases import cases


def group(name: str, version: str, *resources: tuple[str, str], stale: bool = False) -> Obj:
    served = [
        {"resource": plural, "responseKind": {"kind": kind}, "subresources": [{"subresource": "status"}]}
        for plural, kind in resources
    ]
    freshness = "Stale" if stale else "Current"
    return {"metadata": {"name": name}, "versions": [{"version": version, "resources": served, "freshness": freshness}]}


def test_versions_are_named_with_their_group_and_kinds_sorted() -> None:
    found = from_groups([group("", "v1", ("pods", "Pod")), group("apps", "v1", ("b", "B"), ("a", "A"))])
    assert found == Enablements(
        [
            {"groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod"}]},
            {"groupVersion": "apps/v1", "resources": [{"name": "a", "kind": "A"}, {"name": "b", "kind": "B"}]},
        ],
        True,
    )


def test_a_stale_version_is_missing_and_makes_the_rest_partial() -> None:
    found = from_groups([group("apps", "v1", ("a", "A")), group("metrics", "v1", ("m", "M"), stale=True)])
    assert [entry["groupVersion"] for entry in found.entries] == ["apps/v1"]
    assert condition(found)["message"] == "might collect partial APIEnablements(1) from the cluster"


@cases(
    (0, True, "False", "Empty"),
    (0, False, "False", "Empty"),
    (3, False, "False", "Partial"),
    (3, True, "True", "Complete"),
)
def test_how_complete_it_is(count: int, complete: bool, status: str, reason: str) -> None:
    found = condition(Enablements([{}] * count, complete))
    assert (found["status"], found["reason"]) == (status, reason)


@pytest.fixture
async def transport(member: FakeMember) -> AsyncIterator[HttpTransport]:
    made = HttpTransport(RestConfig(member.server.url, ca=Material(member.server.pki.ca.cert_pem), token=TOKEN))
    yield made
    await made.close()


async def test_unchanged_kinds_are_the_very_same_object(member: FakeMember, transport: HttpTransport) -> None:
    reader = EnablementReader(transport, FakeClock())
    first = await reader.read()
    assert first.complete
    assert await reader.read() is first


async def test_a_server_without_aggregated_discovery_is_walked_through_once_a_minute(
    member: FakeMember, transport: HttpTransport
) -> None:
    clock = FakeClock()
    modern = await EnablementReader(transport, clock).read()
    member.gate.legacy = True
    reader = EnablementReader(transport, clock)
    assert await reader.read() == modern
    before = sum(member.gate.requests.values())
    await clock.advance(59)
    assert await reader.read() == modern
    assert sum(member.gate.requests.values()) == before
    await clock.advance(1)
    assert await reader.read() == modern
    assert sum(member.gate.requests.values()) > before


async def test_a_group_that_fails_is_checked_again_on_the_next_pass(
    member: FakeMember, transport: HttpTransport
) -> None:
    member.gate.legacy = True
    member.gate.codes["/apis/apps/v1"] = 503
    reader = EnablementReader(transport, FakeClock())
    partial = await reader.read()
    assert not partial.complete
    assert "apps/v1" not in [entry["groupVersion"] for entry in partial.entries]
    del member.gate.codes["/apis/apps/v1"]
    assert (await reader.read()).complete


async def test_a_server_that_cannot_be_reached_serves_nothing(member: FakeMember, transport: HttpTransport) -> None:
    await member.stop()
    assert await EnablementReader(transport, FakeClock()).read() == Enablements([], False)


async def test_a_page_that_cannot_be_read_for_a_moment_loses_nothing(
    member: FakeMember, transport: HttpTransport
) -> None:
    reader = EnablementReader(transport, FakeClock())
    whole = await reader.read()
    member.gate.codes["/apis"] = 500
    kept = await reader.read()
    assert (kept.entries, kept.complete) == (whole.entries, False)
    assert condition(kept)["reason"] == "Partial"
    del member.gate.codes["/apis"]
    assert await reader.read() == whole


async def test_a_group_that_cannot_be_read_is_as_it_was_known_before_the_process_started(
    member: FakeMember, transport: HttpTransport
) -> None:
    whole = await EnablementReader(transport, FakeClock()).read()
    member.gate.legacy = True
    member.gate.codes["/apis/apps/v1"] = 429
    kept = await EnablementReader(transport, FakeClock(), "m1", whole.entries).read()
    assert (kept.entries, kept.complete) == (whole.entries, False)


def test_a_stale_version_is_as_it_was_and_a_removed_group_is_gone() -> None:
    known = {"a.example.com/v1": {"groupVersion": "a.example.com/v1", "resources": [{"name": "as", "kind": "A"}]}}
    stale = {"metadata": {"name": "a.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    assert from_groups([stale], known) == Enablements([known["a.example.com/v1"]], False)
    assert from_groups([], known) == Enablements([], True)

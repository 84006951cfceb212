"""Accounts and roles of another server: its reviews are requested and cached, and its front proxy is trusted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from multidict import CIMultiDict

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.errors import Forbidden, InternalError, ServiceUnavailable, Unauthorized
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CONFIG_MAPS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.informers import Informers
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.delegated import (
    PUBLISHED,
    DelegatedAuthenticator,
    DelegatedAuthorizer,
    FollowedTrust,
    Trust,
)
from karmada.kube.server.auth.frontproxy import FrontProxy
from karmada.kube.server.auth.pki import CLIENT_USAGES, CertificateAuthority
from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from tests.support.eventually import eventually
from tests.support.rights import grant, group
from tests.support.running import api_server

JANE = User("jane", "1", ("crew", "system:authenticated"), {"scopes": ("a", "b")})
LIST = AuthzAttributes("list", "cluster.karmada.io", "v1alpha1", "clusters")


class Counting:
    """A client that counts, and holds back what the test sets."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.requests: list[Obj] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def create(self, kind: GVR, obj: Obj) -> Obj:
        self.requests.append(obj)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return await self._client.create(kind, obj)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    (path / "tokens.csv").write_text('sesame,jane,1,"crew"\n')
    return path


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[ApiServer]:
    async with api_server(folder, token_file=folder / "tokens.csv") as server:
        yield server


@pytest.fixture
def delegating(server: ApiServer) -> Any:
    return Counting(server.client())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=time.time())


# --- rights


async def test_access_reviews_have_everything_known_of_the_user(delegating: Any, clock: FakeClock) -> None:
    rights = DelegatedAuthorizer(delegating, clock)
    assert not (await rights.decide(JANE, LIST._replace(name="m1", subresource="proxy"))).allowed
    [review] = delegating.requests
    assert review["spec"] == {
        "user": "jane",
        "uid": "1",
        "groups": ["crew", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "list", "group": "cluster.karmada.io", "version": "v1alpha1", "resource": "clusters",
            "subresource": "proxy", "name": "m1",
        },
    }  # fmt: skip


async def test_an_answer_is_remembered_for_a_while(server: ApiServer, delegating: Any, clock: FakeClock) -> None:
    rights = DelegatedAuthorizer(delegating, clock)
    assert not (await rights.decide(JANE, LIST)).allowed
    listing = {"apiGroups": ["*"], "resources": ["clusters"], "verbs": ["list"]}
    await grant(server.client(), "crew", [listing], group("crew"))
    assert not (await rights.decide(JANE, LIST)).allowed, "still the old answer"
    assert len(delegating.requests) == 1
    await clock.advance(10.1)
    decision = await rights.decide(JANE, LIST)
    assert decision.allowed
    assert decision.reason.startswith("RBAC: allowed by")
    assert len(delegating.requests) == 2


async def test_concurrent_equal_reviews_share_one_request(delegating: Any, clock: FakeClock) -> None:
    rights = DelegatedAuthorizer(delegating, clock)
    delegating.gate.clear()
    waiting = [asyncio.create_task(rights.decide(JANE, LIST)) for _ in range(20)]
    await eventually(lambda: delegating.requests)
    waiting[0].cancel()
    delegating.gate.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert all(not answer.allowed for answer in answers[1:])
    assert len(delegating.requests) == 1


async def test_a_failure_is_reported_and_not_remembered(delegating: Any, clock: FakeClock) -> None:
    rights = DelegatedAuthorizer(delegating, clock)
    delegating.failure = ServiceUnavailable("not now")
    with pytest.raises(InternalError, match="not now"):
        await rights.decide(JANE, LIST)
    delegating.failure = None
    assert not (await rights.decide(JANE, LIST)).allowed


async def test_health_pages_and_masters_need_no_question(delegating: Any, clock: FakeClock) -> None:
    rights = DelegatedAuthorizer(delegating, clock)
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
        assert (await rights.decide(JANE, AuthzAttributes("get", path=path, is_resource=False))).allowed
    assert (await rights.decide(User("root", groups=("system:masters",)), LIST)).allowed
    assert delegating.requests == []
    assert not (await rights.decide(JANE, AuthzAttributes("get", path="/metrics", is_resource=False))).allowed
    assert delegating.requests[0]["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


# --- callers


def headers(**values: str) -> CIMultiDict[str]:
    return CIMultiDict({name.replace("_", "-"): value for name, value in values.items()})


async def test_a_token_is_reviewed_once_in_a_while(delegating: Any, clock: FakeClock) -> None:
    callers = DelegatedAuthenticator(delegating, clock)
    for _ in range(3):
        user = await callers.identify(headers(Authorization="Bearer sesame"), None, [])
        assert (user.name, user.uid, user.groups) == ("jane", "1", ("crew", "system:authenticated"))
    assert len(delegating.requests) == 1
    await clock.advance(10.1)
    await callers.identify(headers(Authorization="Bearer sesame"), None, [])
    assert len(delegating.requests) == 2


@pytest.mark.parametrize("authorization", ["Bearer wrong", "bearer other"])
async def test_a_bad_token_is_refused(delegating: Any, clock: FakeClock, authorization: str) -> None:
    with pytest.raises(Unauthorized):
        await DelegatedAuthenticator(delegating, clock).identify(headers(Authorization=authorization), None, [])


async def test_a_token_that_cannot_be_reviewed_is_refused(delegating: Any, clock: FakeClock) -> None:
    delegating.failure = Forbidden("you may not create reviews")
    with pytest.raises(Unauthorized):
        await DelegatedAuthenticator(delegating, clock).identify(headers(Authorization="Bearer sesame"), None, [])


async def test_nobody_is_anonymous_or_refused(delegating: Any, clock: FakeClock) -> None:
    assert (await DelegatedAuthenticator(delegating, clock).identify(headers(), None, [])).name == "system:anonymous"
    with pytest.raises(Unauthorized):
        await DelegatedAuthenticator(delegating, clock, anonymous=False).identify(headers(), None, [])


CLIENTS, PROXIES = CertificateAuthority.create("clients"), CertificateAuthority.create("proxies")


def der(authority: CertificateAuthority, name: str, *groups: str) -> bytes:
    pair = authority.issue(name, organizations=groups, usages=CLIENT_USAGES)
    return x509.load_pem_x509_certificate(pair.cert_pem).public_bytes(Encoding.DER)


async def test_a_front_proxy_names_the_user_in_the_headers_agreed_on(delegating: Any, clock: FakeClock) -> None:
    callers = DelegatedAuthenticator(delegating, clock)
    proxy = FrontProxy(
        PROXIES.cert_pem,
        ("front",),
        user_headers=("X-Who", "X-Remote-User"),
        group_headers=("X-Which",),
        extra_prefixes=("X-More-",),
    )
    callers.believe(Trust(CLIENTS.cert_pem, proxy))
    sent = CIMultiDict([("X-Who", "jane"), ("X-Which", "a"), ("X-Which", "b"), ("X-More-Scopes", "s")])
    user = await callers.identify(sent, der(PROXIES, "front"), [])
    assert (user.name, user.groups) == ("jane", ("a", "b", "system:authenticated"))
    assert user.extra == {"scopes": ("s",)}
    for certificate in (der(PROXIES, "other"), der(PROXIES, "front")):
        with pytest.raises(Unauthorized):
            await callers.identify(headers(X_Nobody="jane"), certificate, [])
    with pytest.raises(Unauthorized):
        await callers.identify(sent, der(PROXIES, "other"), [])
    user = await callers.identify(sent, der(CLIENTS, "joe", "staff"), [])
    assert (user.name, user.groups) == ("joe", ("staff", "system:authenticated"))
    assert delegating.requests == []


# --- whom to trust


async def test_the_published_authorities_are_followed(server: ApiServer, clock: FakeClock) -> None:
    client = server.client()
    seen: list[Trust] = []
    informers = Informers(client, clock=clock)
    FollowedTrust(informers, Trust(b"given"), seen.append)
    informers.start()
    try:
        await informers.wait_synced()
        assert seen[-1].client_ca_pem == b"given\n" + server.pki.ca.cert_pem
        assert seen[-1].proxy.ca_pem == server.pki.front_proxy_ca.cert_pem
        assert list(seen[-1].proxy.allowed_names) == ["front-proxy-client"]
        change: Obj = {"data": {"requestheader-allowed-names": '["other"]'}}
        await client.patch(CONFIG_MAPS, PUBLISHED.name, PUBLISHED.namespace, change)
        await eventually(lambda: seen[-1].proxy.allowed_names == ("other",))
        count = len(seen)
        for broken in ("nonsense", '{"a": 1}', "[1]"):
            change = {"data": {"requestheader-allowed-names": broken}}
            await client.patch(CONFIG_MAPS, PUBLISHED.name, PUBLISHED.namespace, change)
        change = {"data": {"requestheader-allowed-names": "[]"}}
        await client.patch(CONFIG_MAPS, PUBLISHED.name, PUBLISHED.namespace, change)
        await eventually(lambda: len(seen) > count)
        assert len(seen) == count + 1, "what cannot be read changes nothing"
        assert list(seen[-1].proxy.allowed_names) == []
    finally:
        await informers.stop()


async def test_a_front_proxy_that_is_given_counts_alone(server: ApiServer, clock: FakeClock) -> None:
    seen: list[Trust] = []
    informers = Informers(server.client(), clock=clock)
    given = FrontProxy(PROXIES.cert_pem, ("mine",))
    FollowedTrust(informers, Trust(b"", given), seen.append)
    informers.start()
    try:
        await informers.wait_synced()
        assert seen[-1].proxy == given
        assert seen[-1].client_ca_pem == server.pki.ca.cert_pem
    finally:
        await informers.stop()

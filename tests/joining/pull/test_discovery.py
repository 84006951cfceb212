"""Discovery: what is read over an untrusted connection is believed only when it is proven."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from karmada.apiserver.registration import cluster_info
from karmada.joining.join import JoinError
from karmada.joining.pull.discovery import Discovery, discover
from karmada.joining.pull.pins import parse_pins, pins_of
from karmada.kube.client.config import RestConfig
from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.bootstrap_tokens import BootstrapToken, detached_signature
from karmada.kube.objects.clock import FakeClock
from karmada.kube.server.auth.pki import CertificateAuthority

TOKEN = BootstrapToken("abcdef", "0123456789abcdef")
AUTHORITY = CertificateAuthority.create("kubernetes").cert_pem
PINS = parse_pins(pins_of(AUTHORITY))
TEXT: str = cluster_info("https://10.0.0.1:5443", AUTHORITY)["data"]["kubeconfig"]
PREFIX = "couldn't validate the identity of the API Server: "
Reads = Callable[[RestConfig], dict[str, str]]


def signed(text: str, token: BootstrapToken = TOKEN) -> dict[str, str]:
    return {"kubeconfig": text, f"jws-kubeconfig-{token.id}": detached_signature(text, token)}


class Server:
    """Returns what `reads` makes of each connection; counts them."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.count = 0

    @asynccontextmanager
    async def connect(self, config: RestConfig) -> AsyncIterator[Any]:
        server = self

        class Client:
            async def get(self, *_: object) -> Any:
                server.count += 1
                return {"data": server.reads(config)}

        yield Client()


def discovery(**changes: Any) -> Discovery:
    return Discovery(**{"server": "https://10.0.0.1:5443", "token": TOKEN, "pins": PINS, **changes})


async def found(reads: Reads, **changes: Any) -> RestConfig:
    return await discover(Server(reads).connect, discovery(**changes), clock=FakeClock())


async def test_a_signed_and_pinned_authority_is_read_again_with_itself() -> None:
    seen = []

    def reads(config: RestConfig) -> dict[str, str]:
        seen.append((config.insecure, config.ca.data, config.token))
        return signed(TEXT)

    config = await found(reads)
    assert (config.server, config.insecure, config.ca.data) == ("https://10.0.0.1:5443", False, AUTHORITY)
    assert seen == [(True, b"", ""), (False, AUTHORITY, "")]


async def test_without_pins_the_signature_is_enough() -> None:
    assert (await found(lambda config: signed(TEXT) if config.insecure else {}, pins=frozenset())).ca.data == AUTHORITY


SEVERAL = TEXT.replace("contexts: null", '- cluster: {server: "https://b"}\n  name: b\ncontexts: null')
BAD: dict[str, tuple[dict[str, str], str]] = {
    "no kubeconfig": ({"jws-kubeconfig-abcdef": "x"}, "there is no kubeconfig key in the cluster-info ConfigMap"),
    "another text": ({**signed(TEXT), "kubeconfig": TEXT + "\n"}, "failed to verify JWS signature"),
    "another secret": (signed(TEXT, BootstrapToken("abcdef", "f" * 16)), "failed to verify JWS signature"),
    "not a kubeconfig": (signed("[]"), "couldn't parse the kubeconfig file in the cluster-info ConfigMap"),
    "several clusters": (
        signed(SEVERAL),
        "expected the kubeconfig file in the cluster-info ConfigMap to have",
    ),
    "a file of the reader": (
        signed("clusters: [{name: a, cluster: {server: b, certificate-authority: /etc/passwd}}]"),
        "the kubeconfig file in the cluster-info ConfigMap has no certificate authority",
    ),
}


@pytest.mark.parametrize(("data", "message"), BAD.values(), ids=BAD.keys())
async def test_what_is_not_proven_is_refused(data: dict[str, str], message: str) -> None:
    with pytest.raises(JoinError) as refused:
        await found(lambda _config: data)
    assert str(refused.value).startswith(PREFIX + message)


async def test_another_text_over_the_verified_connection_is_refused() -> None:
    with pytest.raises(JoinError, match=r"\(using validated TLS\) was different from the first"):
        await found(lambda config: signed(TEXT if config.insecure else TEXT.replace("10.0.0.1", "10.0.0.2")))


async def test_a_server_that_the_authority_has_not_certified_is_refused_at_once() -> None:
    def reads(config: RestConfig) -> dict[str, str]:
        if config.insecure:
            return signed(TEXT)
        raise ConnectionFailed("https://10.0.0.1:5443: not certified") from ssl.SSLCertVerificationError("no")

    with pytest.raises(JoinError, match="not certified"):
        await found(reads)


async def test_it_is_tried_again_until_the_signature_is_there() -> None:
    clock = FakeClock()
    answers: list[dict[str, str]] = [{}, {"kubeconfig": TEXT}]

    def reads(_config: RestConfig) -> dict[str, str]:
        if not answers:
            return signed(TEXT)
        if not (answer := answers.pop(0)):
            raise ConnectionFailed("https://10.0.0.1:5443: refused")
        return answer

    reported: list[str] = []
    task = asyncio.create_task(discover(Server(reads).connect, discovery(), clock=clock, progress=reported.append))
    await clock.advance(14)
    assert (await task).ca.data == AUTHORITY
    assert [text.partition(": ")[0] for text in reported] == [
        "https://10.0.0.1:5443",
        'could not find a JWS signature in the cluster-info ConfigMap for token ID "abcdef"',
    ]


async def test_after_the_timeout_the_last_problem_is_reported() -> None:
    clock = FakeClock()
    server = Server(lambda _config: {"kubeconfig": TEXT})
    task = asyncio.create_task(discover(server.connect, discovery(timeout=60), clock=clock))
    await clock.advance(59)
    assert not task.done()
    assert 9 <= server.count <= 12
    await clock.advance(2)
    with pytest.raises(JoinError, match="is invalid for this cluster or it has expired"):
        await task

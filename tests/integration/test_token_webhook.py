"""Tokens that a webhook reviews: what it says counts, for a while, and without it nobody gets in."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.auth.token_sources import TokenWebhookConfig
from karmada.kube.server.config import DEFAULT_ISSUER
from karmada.kube.server.outbound.backend import ATTEMPTS
from tests.support.callers import Caller, encoded, status_with
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.running import api_server
from tests.support.tls_backend import TlsBackend, authority


class Reviews:
    """The webhook: `answers` by token."""

    def __init__(self) -> None:
        self.reviewed: list[Obj] = []
        self.headers: dict[str, str] = {}
        self.answers: dict[str, Obj] = {}
        self.status = 200

    async def __call__(self, raw: web.BaseRequest) -> web.StreamResponse:
        assert (raw.method, raw.path) == ("POST", "/review")
        self.headers = dict(raw.headers)
        review = json.loads(await raw.read())
        self.reviewed.append(review)
        status = self.answers.get(review["spec"]["token"], {"authenticated": False})
        return web.json_response({**review, "status": status}, status=self.status)


@pytest.fixture
async def reviews() -> AsyncIterator[tuple[Reviews, TlsBackend]]:
    async with TlsBackend() as backend:
        reviews = Reviews()
        reviews.answers["good"] = {"authenticated": True, "user": {"username": "jane", "groups": ["dev"], "uid": "7"}}
        backend.handler = reviews
        yield reviews, backend


def kubeconfig(path: Path, port: int) -> Path:
    cluster = {
        "server": f"https://127.0.0.1:{port}/review",
        "certificate-authority-data": encoded(authority().cert_pem),
    }
    path.write_text(
        yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "x", "cluster": cluster}],
            "users": [{"name": "x", "user": {"token": "mine"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        })
    )  # fmt: skip
    return path


@asynccontextmanager
async def serving(certificates: Path, file: Path, version: str = "v1") -> AsyncIterator[tuple[ApiServer, FakeClock]]:
    webhook = TokenWebhookConfig(file=file, version=version, cache_seconds=60.0)
    clock = FakeClock(start=time.time())
    async with api_server(certificates, clock, controllers=False, token_webhook=webhook) as server:
        yield server, clock


async def test_the_webhook_says_whose_token_it_is(
    certificates: Path, tmp_path: Path, reviews: tuple[Reviews, TlsBackend]
) -> None:
    hook, backend = reviews
    async with serving(certificates, kubeconfig(tmp_path / "hook", backend.port)) as (server, _):
        async with Caller(server, token="good") as caller:
            assert await caller.who() == {"username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"]}
        [review] = hook.reviewed
        assert (review["apiVersion"], review["kind"]) == ("authentication.k8s.io/v1", "TokenReview")
        assert review["spec"] == {"token": "good", "audiences": [DEFAULT_ISSUER]}
        assert hook.headers["Authorization"] == "Bearer mine"
        assert await status_with(server, "bad") == 401


async def test_both_answers_are_kept_for_their_time(
    certificates: Path, tmp_path: Path, reviews: tuple[Reviews, TlsBackend]
) -> None:
    hook, backend = reviews
    async with serving(certificates, kubeconfig(tmp_path / "hook", backend.port)) as (server, clock):
        for _ in range(3):
            assert (await status_with(server, "good"), await status_with(server, "late")) == (200, 401)
        assert len(hook.reviewed) == 2
        hook.answers["late"] = hook.answers.pop("good")
        await clock.advance(59)
        assert (await status_with(server, "good"), await status_with(server, "late")) == (200, 401)
        await clock.advance(2)
        assert (await status_with(server, "good"), await status_with(server, "late")) == (401, 200)


@cases(
    {"authenticated": True},
    {"authenticated": True, "user": {}},
    {"authenticated": True, "user": {"username": "jane"}, "audiences": ["another"]},
    {"authenticated": False, "error": "no such token"},
    "nonsense",
)
async def test_an_answer_that_names_nobody_is_a_refusal(
    answer: Obj, certificates: Path, tmp_path: Path, reviews: tuple[Reviews, TlsBackend]
) -> None:
    hook, backend = reviews
    hook.answers["odd"] = answer
    async with serving(certificates, kubeconfig(tmp_path / "hook", backend.port)) as (server, _):
        assert await status_with(server, "odd") == 401


async def test_a_webhook_that_fails_lets_nobody_in_and_is_tried_again(
    certificates: Path, tmp_path: Path, reviews: tuple[Reviews, TlsBackend], caplog: pytest.LogCaptureFixture
) -> None:
    hook, backend = reviews
    hook.status = 500
    async with serving(certificates, kubeconfig(tmp_path / "hook", backend.port)) as (server, clock):
        for attempt in (1, 2):
            request = asyncio.create_task(status_with(server, "good"))

            async def answered(request: asyncio.Task[int] = request) -> bool:
                await clock.advance(0.5)
                return request.done()

            await eventually(answered)
            assert await request == 401
            assert len(hook.reviewed) == attempt * ATTEMPTS, "a failure is not kept"
        hook.status = 200
        assert await status_with(server, "good") == 200
        assert await status_with(server, "good") == 200
        assert "good" not in caplog.text, "no token is logged"


async def test_tokens_that_the_server_knows_are_not_sent_out(
    certificates: Path, tmp_path: Path, reviews: tuple[Reviews, TlsBackend]
) -> None:
    hook, backend = reviews
    async with serving(certificates, kubeconfig(tmp_path / "hook", backend.port)) as (server, _):
        admin = server.pki.admin
        async with Caller(server, cert=admin.cert_pem, key=admin.key_pem, token="whatever") as caller:
            assert (await caller.who())["username"] == "system:admin"
        async with Caller(server) as caller:
            assert (await caller("GET", "/version")).code == 200
        assert hook.reviewed == []

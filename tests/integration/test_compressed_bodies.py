"""Compressed bodies: read where a body is read, and never a way to make the server work for nothing."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.samples import CONFIGMAPS, configmap, ok, refused
from tests.support.cases import cases
from tests.support.wire import Http

PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}


@pytest.mark.parametrize("encoding", PACK)
async def test_a_compressed_body_is_read(http: Http, encoding: str) -> None:
    body = PACK[encoding](json.dumps(configmap()).encode())
    stored = ok(await http("POST", CONFIGMAPS, body, headers={"Content-Encoding": encoding}), 201)
    assert stored["data"] == configmap()["data"]


@cases(
    (gzip.compress(b" " * 4_000_000), "gzip", 413),
    (b"{}", "gzip", 400),
    (gzip.compress(b"{}" * 1000)[:-12], "gzip", 400),
    (b"{}", "br", 415),
    ids=["too large", "not compressed", "cut off", "of an unknown encoding"],
)
async def test_a_body_that_cannot_be_inflated_is_refused(body: bytes, encoding: str, code: int, http: Http) -> None:
    answer = await http("POST", CONFIGMAPS, body, headers={"Content-Encoding": encoding})
    assert answer.code == code, answer.body


@cases(("GET", "/version", True, 200), ("POST", CONFIGMAPS, True, 403), ("GET", CONFIGMAPS, False, 200))
async def test_nothing_is_inflated_for_requests_without_the_right_to_a_body(
    method: str, path: str, anonymous: bool, code: int, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("a body was inflated")

    monkeypatch.setattr(zlib, "decompressobj", fail)
    bomb = gzip.compress(b" " * 50_000_000)
    answer = await http(method, path, bomb, headers={"Content-Encoding": "gzip"}, anonymous=anonymous)
    assert answer.code == code


async def test_a_patch_may_be_compressed_too(http: Http) -> None:
    ok(await http("POST", CONFIGMAPS, configmap()), 201)
    body = gzip.compress(json.dumps({"data": {"new": "1"}}).encode())
    changed = await http(
        "PATCH",
        f"{CONFIGMAPS}/{configmap()['metadata']['name']}",
        body,
        headers={"Content-Encoding": "gzip"},
        content_type="application/merge-patch+json",
    )
    assert ok(changed)["data"]["new"] == "1"
    refused(await http("POST", CONFIGMAPS, body), 400, "BadRequest")

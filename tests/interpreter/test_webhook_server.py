"""The library for webhooks in Python: decoding, responses, and a server that follows its certificate."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from karmada.interpreter.webhook_server import (
    MAX_BODY,
    InterpreterRequest,
    InterpreterResponse,
    answer,
    errored,
    patched,
    refused,
    serving,
    succeeded,
)
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth.pki import SERVER_USAGES
from karmada.kube.server.auth.serving import FILES_SECONDS
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.tls_backend import authority

KIND = {"group": "example.com", "version": "v1", "kind": "Farm"}


def body(**fields: Any) -> bytes:
    request = {"uid": "u1", "kind": KIND, "name": "corn", "operation": "InterpretHealth", "object": {}, **fields}
    return orjson.dumps({"request": request})


async def response_of(found: InterpreterResponse | Exception, sent: bytes | None = None) -> Obj:
    def interpret(_request: InterpreterRequest) -> InterpreterResponse:
        if isinstance(found, Exception):
            raise found
        return found

    made: Obj = orjson.loads(await answer(interpret, body() if sent is None else sent, "application/json"))
    return made["response"]


@cases(
    (succeeded("fine"), {"successful": True, "status": {"message": "fine", "code": 200}}),
    (refused("no"), {"successful": False, "status": {"message": "no", "code": 403}}),
    (errored(409, "later"), {"successful": False, "status": {"message": "later", "code": 409}}),
    (
        InterpreterResponse(successful=True, healthy=False, replicas=0),
        {"successful": True, "status": {"code": 200}, "healthy": False, "replicas": 0},
    ),
    (KeyError("spec"), {"successful": False, "status": {"message": "KeyError: 'spec'", "code": 500}}),
)
async def test_a_response_has_the_uid_and_a_status(found: InterpreterResponse | Exception, expected: Obj) -> None:
    assert await response_of(found) == {"uid": "u1", **expected}


async def test_the_function_may_be_a_coroutine_function_and_gets_what_was_sent() -> None:
    seen: list[InterpreterRequest] = []

    async def interpret(request: InterpreterRequest) -> InterpreterResponse:
        seen.append(request)
        return succeeded()

    sent = body(observedObject={"a": 1}, replicas=3, aggregatedStatus=[{"clusterName": "m1"}], operation="Later")
    await answer(interpret, sent, "application/json")
    [request] = seen
    assert (request.operation, request.observed_object, request.replicas) == ("Later", {"a": 1}, 3)
    assert request.aggregated_status[0].cluster_name == "m1"


@cases(
    (body(), "text/plain", "contentType=text/plain, expected application/json"),
    (body(), "application/json; charset=utf-8", "contentType=application/json; charset=utf-8"),
    (b"", "application/json", "request body is empty"),
    (b"{", "application/json", "Input data was truncated"),
    (b"{}", "application/json", "there is no request"),
    (body(replicas="x"), "application/json", "$.request.replicas"),
)
async def test_what_is_no_request_is_answered_with_400_and_without_uid(
    sent: bytes, content_type: str, message: str
) -> None:
    response = orjson.loads(await answer(lambda _request: succeeded(), sent, content_type))["response"]
    assert (response["uid"], response["successful"], response["status"]["code"]) == ("", False, 400)
    assert message in response["status"]["message"]


async def test_a_patch_is_the_difference_and_none_where_there_is_none() -> None:
    response = await response_of(patched({"spec": {"a": 1}}, {"spec": {"a": 2}}))
    operations = orjson.loads(base64.b64decode(response["patch"]))
    assert operations == [{"op": "replace", "path": "/spec/a", "value": 2}]
    assert response["patchType"] == "JSONPatch"
    assert await response_of(patched({"a": 1}, {"a": 1})) == await response_of(succeeded())


def write_certificate(directory: Path) -> None:
    pair = authority().issue("hook", sans=("127.0.0.1",), usages=SERVER_USAGES)
    (directory / "tls.key").write_bytes(pair.key_pem)
    (directory / "tls.crt").write_bytes(pair.cert_pem)


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority().cert_pem.decode())


async def test_it_serves_by_https_and_limits_what_is_sent(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    paths = {"/interpret": lambda _request: succeeded()}
    async with (
        serving(paths, tmp_path, host="127.0.0.1", port=0) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting())) as session,
    ):

        async def post(sent: bytes) -> Obj:
            headers = {"Content-Type": "application/json"}
            async with session.post(f"https://127.0.0.1:{port}/interpret", data=sent, headers=headers) as response:
                assert response.status == 200
                return (await response.json())["response"]

        assert (await post(body()))["successful"]
        large = await post(b" " * (MAX_BODY + 1))
        assert large["status"] == {"message": f"request body is larger than {MAX_BODY} bytes", "code": 400}


async def test_a_changed_certificate_is_served(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    clock = FakeClock()

    async with serving({}, tmp_path, host="127.0.0.1", port=0, clock=clock) as port:

        async def served() -> bytes:
            _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
            found: ssl.SSLObject = writer.get_extra_info("ssl_object")
            certificate = found.getpeercert(binary_form=True)
            writer.close()
            return certificate or b""

        def in_file() -> bytes:
            return ssl.PEM_cert_to_DER_cert((tmp_path / "tls.crt").read_text())

        assert await served() == in_file()
        write_certificate(tmp_path)
        assert await served() != in_file()
        await clock.advance(FILES_SECONDS)

        async def is_current() -> bool:
            return await served() == in_file()

        await eventually(is_current)


async def test_a_directory_without_a_certificate_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with serving({}, tmp_path):
            pass

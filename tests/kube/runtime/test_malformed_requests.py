"""Requests that are not HTTP: a short line each in the log, nothing of what was sent, and never many."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from karmada.kube.runtime.malformed_requests import MalformedRequests, shorten_malformed_requests

LOGGER = "aiohttp.server"


def record(error: Exception) -> logging.LogRecord:
    info = (type(error), error, None)
    return logging.LogRecord(LOGGER, logging.ERROR, "f.py", 1, "Error handling request from %s", ("10.0.0.1",), info)


async def _serve(_request: web.BaseRequest) -> web.Response:
    return web.Response(text="ok")


async def send(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


async def test_a_malformed_request_leaves_no_token_and_no_megabyte_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    shorten_malformed_requests()
    runner = web.ServerRunner(web.Server(_serve, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    secret = b"Authorization: Bearer s3cr3t\x00" + b"x" * 50_000
    with caplog.at_level(logging.INFO):
        for _ in range(20):
            answer = await send(runner.addresses[0][1], b"GET / HTTP/1.1\r\nHost: h\r\n" + secret + b"\r\n\r\n")
            assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    await runner.cleanup()
    text = "\n".join(logging.Formatter().format(found) + str(found.__dict__.get("pairs")) for found in caplog.records)
    assert "Malformed HTTP request" in text
    assert "s3cr3t" not in text
    assert len(text) < 5_000


def test_a_line_says_who_sent_what_sort_of_mistake() -> None:
    found = record(BadHttpMessage("Bearer s3cr3t"))
    assert MalformedRequests(lambda: 0.0).filter(found)
    assert found.getMessage() == "Malformed HTTP request"
    assert found.levelno == logging.WARNING
    assert found.exc_info is None
    assert found.__dict__["pairs"] == {"remote": "10.0.0.1", "problem": "BadHttpMessage", "suppressed": 0}


def test_many_lines_in_a_minute_are_counted_instead_of_written() -> None:
    now = 0.0
    lines = MalformedRequests(lambda: now)
    assert sum(lines.filter(record(BadHttpMessage("x"))) for _ in range(1000)) == 10
    now = 61.0
    found = record(BadHttpMessage("x"))
    assert lines.filter(found)
    assert found.__dict__["pairs"]["suppressed"] == 990


def test_an_error_of_our_own_keeps_its_traceback() -> None:
    found = record(RuntimeError("a bug"))
    assert MalformedRequests(lambda: 0.0).filter(found)
    assert found.exc_info

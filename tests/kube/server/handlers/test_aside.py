"""Long work on a large body: in a thread of its own, with the answers and errors of any other request."""

from __future__ import annotations

import threading

import pytest

from karmada.kube.objects.errors import BadRequest
from karmada.kube.runtime.aside import LARGE
from karmada.kube.server.auth.user import User
from karmada.kube.server.handlers.aside import aside
from karmada.kube.server.http.request import Query, Request, parse_path
from tests.support.cases import cases


def request(body: bytes) -> Request:
    query = Query({})
    return Request("POST", parse_path("POST", "/api/v1/pods", query), query, {}, User("u"), body=body)


@cases((LARGE - 1, True), (LARGE, False))
async def test_only_the_work_of_a_large_body_leaves_the_loop(size: int, here: bool) -> None:
    thread = await aside(request(b"x" * size), threading.get_ident)
    assert (thread == threading.get_ident()) is here


@cases((LARGE - 1, True), (LARGE, False))
async def test_work_on_a_large_live_object_leaves_the_loop(live: int, here: bool) -> None:
    patch = request(b"{}")
    patch.live_bytes = live
    thread = await aside(patch, threading.get_ident)
    assert (thread == threading.get_ident()) is here


@cases(
    ("application/yaml", b"a: &a {}", False),
    ("application/apply-patch+yaml; charset=utf-8", b"<<: *a", False),
    ("application/yaml", b"a: 1", True),
    ("application/json", b'{"a": "&*"}', True),
)
async def test_yaml_with_aliases_leaves_the_loop_whatever_its_size(media: str, body: bytes, here: bool) -> None:
    posted = request(body)
    posted.headers = {"Content-Type": media}
    thread = await aside(posted, threading.get_ident)
    assert (thread == threading.get_ident()) is here


async def test_a_refusal_comes_back_from_the_thread() -> None:
    def refuse() -> None:
        raise BadRequest("no")

    with pytest.raises(BadRequest, match="no"):
        await aside(request(b"x" * LARGE), refuse)


@pytest.mark.parametrize(("size", "here"), [(100, True), (LARGE, False)])
async def test_the_work_of_a_large_object_that_came_parsed_leaves_the_loop(size: int, here: bool) -> None:
    made = request(b"")
    made.obj = {"data": {"text": "x" * size}}
    thread = await aside(made, threading.get_ident)
    assert (thread == threading.get_ident()) is here

"""Long work on a large body: in a thread of its own, with the answers and errors of any other request."""

from __future__ import annotations

import threading

import pytest

from karmada.kube.objects.errors import BadRequest
from karmada.kube.server.auth.user import User
from karmada.kube.server.handlers.aside import LARGE, aside
from karmada.kube.server.http.request import Query, Request, parse_path


def request(body: bytes) -> Request:
    query = Query({})
    return Request("POST", parse_path("POST", "/api/v1/pods", query), query, {}, User("u"), body=body)


@pytest.mark.parametrize(("size", "here"), [(LARGE - 1, True), (LARGE, False)])
async def test_only_the_work_of_a_large_body_leaves_the_loop(size: int, here: bool) -> None:
    thread = await aside(request(b"x" * size), threading.get_ident)
    assert (thread == threading.get_ident()) is here


async def test_a_refusal_comes_back_from_the_thread() -> None:
    def refuse() -> None:
        raise BadRequest("no")

    with pytest.raises(BadRequest, match="no"):
        await aside(request(b"x" * LARGE), refuse)

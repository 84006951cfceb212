"""Something acts on every kind, or a warning says which gate that needs."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from karmada.admission.context import Settings
from karmada.admission.not_acted_on import warning_of
from karmada.admission.review import respond
from karmada.admission.table import VALIDATING
from karmada.api.crds import all_kinds
from karmada.features import default_gates
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.running import run_server
from tests.support.wire import Http

ROOT = Path(__file__).parents[2]
ACTING = ("controllers", "scheduler", "overrides", "members", "joining", "interpreter", "search")
"""The packages whose code makes something happen."""
SERVICES = GroupResource("networking.karmada.io", "multiclusterservices")
WARNING = "MultiClusterService: stored; nothing acts on it without --feature-gates=MultiClusterService=true"
SERVICE = {
    "apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
    "metadata": {"name": "web", "namespace": "default"}, "spec": {"types": ["CrossCluster"]},
}  # fmt: skip


def imported() -> Iterator[tuple[str, str]]:
    """(module, name) of everything that the acting packages take from karmada.api."""
    for package in ACTING:
        for path in (ROOT / "src/karmada" / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("karmada.api."):
                    yield from ((str(node.module), alias.name) for alias in node.names)


def test_something_acts_on_every_kind() -> None:
    used = set(imported())
    acted_on = {info.gvr.group_resource for info in all_kinds() if (info.type.__module__, info.type.__name__) in used}
    assert {info.gvr.group_resource for info in all_kinds()} == acted_on


def test_a_kind_that_needs_a_gate_is_acted_on_where_it_is_on() -> None:
    gates = default_gates()
    gates.set("MultiClusterService=true")
    assert warning_of(SERVICES, Settings()) == WARNING
    assert warning_of(SERVICES, Settings(gates=gates)) == ""


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[Http]:
    from karmada.apiserver.mount import mount, until_served

    server = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0))
    mount(server, default_gates())
    async with run_server(server):
        await until_served(server)
        http = Http(server)
        yield http
        await http.close()


async def test_a_write_of_such_a_kind_is_stored_with_a_warning(http: Http) -> None:
    made = await http("POST", "/apis/networking.karmada.io/v1alpha1/namespaces/default/multiclusterservices", SERVICE)
    assert made.code == 201, made.body
    assert made.headers["Warning"] == f'299 - "{WARNING}"'


async def test_other_kinds_have_no_warning(http: Http) -> None:
    made = await http("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert made.code == 201
    assert "Warning" not in made.headers


async def test_the_webhook_answers_with_the_warning() -> None:
    hook = next(hook for hook in VALIDATING if hook.resource == SERVICES)
    response = await respond(hook, {"operation": "CREATE", "object": SERVICE}, Settings())
    assert response["allowed"], response
    assert response["warnings"] == [WARNING]

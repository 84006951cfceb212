"""A patch of the status of a custom resource: of two that race one wins, and nobody's copy of the object changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.clock import FakeClock
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import Conflict
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.eventually import eventually

CRDS, REPORTS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"), GVR("example.io", "v1", "reports")
CRD: Obj = {
    "metadata": {"name": "reports.example.io"},
    "spec": {
        "group": "example.io",
        "scope": "Namespaced",
        "names": {"plural": "reports", "singular": "report", "kind": "Report", "listKind": "ReportList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    api = ApiServer(ServerConfig(data_dir=tmp_path, storage="memory://", port=0), FakeClock())
    await api.start()
    client = api.client(user_agent="test")
    await client.create(CRDS, CRD)
    await eventually(lambda: api.registry.get(REPORTS) is not None)
    yield client
    await api.stop()


async def test_of_two_at_the_same_time_that_name_a_version_one_is_refused(client: Client) -> None:
    live = await client.create(REPORTS, {"metadata": {"name": "raced"}}, "default")
    patch = {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"]}, "status": {"phase": "Up"}}
    outcomes = await asyncio.gather(
        *(client.patch(REPORTS, "raced", "default", patch, subresource="status") for _ in range(2)),
        return_exceptions=True,
    )
    assert sorted(type(outcome) is Conflict for outcome in outcomes) == [False, True]


async def test_a_shared_object_is_not_changed_by_a_patch_of_its_status(client: Client) -> None:
    await client.create(REPORTS, {"metadata": {"name": "unchanged"}}, "default")
    patch: Obj = {"status": {"free": {"x": {"y": 1}}}}
    first = await client.patch(REPORTS, "unchanged", "default", patch, subresource="status")
    before = copy_json(dict(first))
    patch = {"status": {"free": {"x": {"z": 2}}}}
    second = await client.patch(REPORTS, "unchanged", "default", patch, subresource="status")
    assert first == before
    assert second["status"]["free"] == {"x": {"y": 1, "z": 2}}

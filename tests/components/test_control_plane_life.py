"""The control plane as a process: it can be stopped while it still starts, and its kinds come back."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karmada.api.crds import all_kinds
from karmada.apiserver import mount
from karmada.components.controlplane import ControlPlane
from karmada.components.running import run, start_unless
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CRDS
from karmada.kube.server.config import ServerConfig
from tests.support.eventually import LIMIT, eventually
from tests.support.objects import kube_object

REBALANCERS = GVR("apps.karmada.io", "v1alpha1", "workloadrebalancers")


def new_plane(folder: Path) -> ControlPlane:
    return ControlPlane(ServerConfig(data_dir=folder, storage="memory://", port=0))


@pytest.fixture
def never_served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One of the kinds never comes; what is logged meanwhile."""
    emitted: list[Any] = []
    absent = SimpleNamespace(gvr=GVR("apps.karmada.io", "v1alpha1", "phantoms"), aggregated=False)
    monkeypatch.setattr(mount, "all_kinds", lambda: [*all_kinds(), absent])
    monkeypatch.setattr(mount, "SERVED_SECONDS", 0.01)
    monkeypatch.setattr(mount, "log", SimpleNamespace(info=lambda *_text, **values: emitted.append(values)))
    return emitted


async def test_a_start_that_waits_reports_for_what_and_ends_on_a_signal(folder: Path, never_served: list[Any]) -> None:
    plane, stopping = new_plane(folder), asyncio.Event()
    running = asyncio.create_task(run(plane, "Control plane", stopping))
    await eventually(lambda: never_served)
    assert never_served[-1]["missing"] == "phantoms.apps.karmada.io"
    stopping.set()
    await asyncio.wait_for(running, LIMIT)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", plane.server.port)) != 0


@pytest.mark.parametrize("turns", [0, 1, 2, 5, 20, 100, 400])
async def test_a_start_can_be_given_up_at_any_time(folder: Path, turns: int) -> None:
    stopping = asyncio.Event()
    running = asyncio.create_task(run(new_plane(folder), "Control plane", stopping))
    for _ in range(turns):
        await asyncio.sleep(0)
    stopping.set()
    await asyncio.wait_for(running, LIMIT)


async def test_what_goes_wrong_at_the_start_is_reported() -> None:
    async def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        await start_unless(asyncio.Event(), fail())


async def test_a_definition_that_was_deleted_comes_back_when_it_is_gone(folder: Path) -> None:
    plane = new_plane(folder)
    await plane.start()
    try:
        client = plane.server.client(user_agent="tests")
        name = f"{REBALANCERS.resource}.{REBALANCERS.group}"
        uid = (await client.get(CRDS, name))["metadata"]["uid"]
        held = kube_object("apps.karmada.io/v1alpha1", "WorkloadRebalancer", "a", finalizers=["example.com/held"]) | {
            "spec": {"workloads": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]}
        }
        await client.create(REBALANCERS, held)
        await client.delete(CRDS, name)
        assert (await client.get(CRDS, name))["metadata"]["uid"] == uid
        await client.patch(REBALANCERS, "a", "", {"metadata": {"finalizers": None}})

        def renewed() -> bool:
            crd = plane.server.cache.get(CRDS.group_resource, "", name)
            return crd is not None and crd["metadata"]["uid"] != uid

        await eventually(renewed)
        await eventually(lambda: plane.server.registry.get(REBALANCERS) is not None)
    finally:
        await plane.stop()

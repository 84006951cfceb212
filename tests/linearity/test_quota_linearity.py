"""A create under a ResourceQuota costs the same, however many objects the namespace has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.server.app import ApiServer
from karmada.kube.server.watchcache.entry import encode_value, storage_key
from tests.linearity.measuring import create, seconds
from tests.linearity.shapes import Sent, post
from tests.support.running import api_server

FEW, MANY = 100, 4_000
NOISE_SECONDS = 0.002
"""A linear count of the larger namespace takes ten times as long."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path, controllers=False) as server:
        yield server


def claim(name: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return {"metadata": {"name": name}, "spec": spec}


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"a": "b"}}


async def fill(server: ApiServer, namespace: str, count: int) -> None:
    """Straight into the store, as a server finds them when it starts."""
    hard = {"requests.storage": "1Ti", "count/configmaps": "100000"}
    quota = {"spec": {"hard": hard}, "status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    await store(server, "resourcequotas", "ResourceQuota", namespace, {"metadata": {"name": "q"}, **quota})
    for number in range(count):
        await store(server, "persistentvolumeclaims", "PersistentVolumeClaim", namespace, claim(f"p{number}"))
        await store(server, "configmaps", "ConfigMap", namespace, config_map(f"c{number}"))


async def store(server: ApiServer, plural: str, kind: str, namespace: str, obj: dict[str, Any]) -> None:
    metadata = {**obj["metadata"], "namespace": namespace, "uid": f"{namespace}-{obj['metadata']['name']}"}
    key = storage_key(GroupResource("", plural), namespace, metadata["name"])
    await server.store.write(
        key, encode_value({**obj, "apiVersion": "v1", "kind": kind, "metadata": metadata}), expected=0
    )


def sent(namespace: str, plural: str) -> Sent:
    return post(f"/api/v1/namespaces/{namespace}/{plural}", (config_map if plural == "configmaps" else claim)("fresh"))


@pytest.mark.parametrize("plural", ["persistentvolumeclaims", "configmaps"])
async def test_a_create_under_a_quota_costs_the_same_in_a_full_namespace(server: ApiServer, plural: str) -> None:
    times = {}
    for namespace, count in (("few", FEW), ("many", MANY)):
        await create(server, post("/api/v1/namespaces", {"metadata": {"name": namespace}}))
        await fill(server, namespace, count)
        assert await create(server, sent(namespace, plural)) == 200  # counts once
        times[namespace] = await seconds(server, sent(namespace, plural), 5)
    assert times["many"] < NOISE_SECONDS + 4 * times["few"], times

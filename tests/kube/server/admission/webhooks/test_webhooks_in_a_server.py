"""Webhooks called by a whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from karmada.kube.client.client import Client
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.types import Obj
from karmada.kube.server.app import ApiServer
from tests.kube.server.admission.webhooks.hooks import Hooks, config_map, labelling, respond
from tests.support.objects import kube_object
from tests.support.running import api_server


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with api_server(tmp_path, controllers=False) as server:
        yield server


@pytest.fixture
async def api(server: ApiServer) -> Client:
    client = server.client()
    await client.create(GVR("", "v1", "namespaces"), kube_object("v1", "Namespace", "shop"))
    return client


async def configure(api: Client, kind: str, *hooks: Obj) -> None:
    gvr = GVR("admissionregistration.k8s.io", "v1", f"{kind.lower()}webhookconfigurations")
    obj = kube_object(gvr.api_version, f"{kind}WebhookConfiguration", "hooks", webhooks=list(hooks))
    await api.create(gvr, obj)


CONFIG_MAPS = GVR("", "v1", "configmaps")
ON_CONFIG_MAPS: list[Obj] = [
    {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
]


async def test_what_a_webhook_changes_is_stored_and_the_server_still_sets_the_metadata(
    api: Client, hooks: Hooks
) -> None:
    await configure(api, "Mutating", hooks.hook("label", labelling("seen"), rules=ON_CONFIG_MAPS))
    made = await api.create(CONFIG_MAPS, config_map())
    assert made["metadata"]["labels"] == {"app": "web", "seen": "yes"}
    assert made["metadata"]["uid"]
    assert made["metadata"]["creationTimestamp"]
    changed = await api.patch(CONFIG_MAPS, "settings", "shop", {"metadata": {"labels": {"seen": None, "more": "x"}}})
    assert changed["metadata"]["labels"] == {"app": "web", "seen": "yes", "more": "x"}
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]
    assert [review["request"]["operation"] for _, review in hooks.requests] == ["CREATE", "UPDATE"]
    assert await api.get(CONFIG_MAPS, "settings", "shop") == changed


async def test_what_a_webhook_refuses_is_not_written(api: Client, hooks: Hooks) -> None:
    def only_creates(review: Obj) -> Obj:
        fine = review["request"]["operation"] == "CREATE"
        return respond(review, allowed=fine, status={"message": "frozen", "code": 403, "reason": "Forbidden"})

    await configure(api, "Validating", hooks.hook("freeze", only_creates, rules=ON_CONFIG_MAPS))
    made = await api.create(CONFIG_MAPS, config_map())
    message = 'admission webhook "freeze.example.com" denied the request: frozen'
    with pytest.raises(Forbidden) as caught:
        await api.update(CONFIG_MAPS, {**made, "data": {}})
    assert caught.value.message == message
    with pytest.raises(Forbidden) as caught:
        await api.delete(CONFIG_MAPS, "settings", "shop")
    assert caught.value.message == message
    with pytest.raises(Forbidden):
        await api.delete_collection(CONFIG_MAPS, "shop")
    assert await api.get(CONFIG_MAPS, "settings", "shop") == made

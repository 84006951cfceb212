"""What --dry-run prints, and addons, are accepted by API servers of every supported version, with strict validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada.install.addons.catalog import ADDONS
from karmada.install.addons.settings import Settings
from karmada.install.certificates import issue
from karmada.install.host import all_stages, foundation
from karmada.install.options import options_from
from karmada.install.secrets import secrets
from karmada.kube.client.manifests import load_manifests
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import dump_yaml
from tests.support.running import api_server

LAYOUTS: dict[str, dict[str, Any]] = {
    "all-in-one": {},
    "separate": {"all-in-one": False},
    "sqlite": {"all-in-one": False, "store": "sqlite", "store-volume": "hostPath"},
    "volumes": {"etcd-storage-mode": "PVC", "storage-classes-name": "fast", "image-pull-secrets": ("a",)},
}
VERSIONS = [f"1.{minor}" for minor in range(25, 38)]


def manifests(layout: str) -> list[Obj]:
    options = options_from({**LAYOUTS[layout], "namespace": layout, "port": 30000 + len(layout)})
    certificates = issue(options, ["10.0.0.1"], {}, 1_800_000_000.0)
    objects = foundation(options, secrets(options, certificates))
    return [*objects, *(obj for stage in all_stages(options) for obj in stage.objects)]


def addons() -> list[Obj]:
    settings = Settings(namespace="separate", cluster="m1", member_kubeconfig=b"{}", authority=b"a", store=["--a=b"])
    return [obj for addon in ADDONS.values() for obj in addon.host(settings)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_manifests_are_accepted(tmp_path: Path, version: str) -> None:
    async with api_server(tmp_path, kubernetes_version=version) as server:
        client = server.client()
        for objects in (*map(manifests, LAYOUTS), addons()):
            text = b"---\n".join(map(dump_yaml, objects))
            for obj in load_manifests(text):
                await client.create(await client.resource_of(obj), obj, field_validation="Strict")

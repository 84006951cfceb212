"""Members of etcd by names of a simulated cluster, which may have no address yet, and another one later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karmada.kube.client.cluster_names import NAMES_FILE
from karmada.kube.client.grpc_library import grpc
from karmada.kube.server.storage.etcd_connection import Member


async def test_a_member_is_found_when_its_name_gets_an_address_and_when_it_gets_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "names.json"
    names.write_text("{}")
    monkeypatch.setenv(NAMES_FILE, str(names))
    member = Member("etcd-0.etcd.shop.svc:2379", None)
    assert not await member.ready(0.1)
    for number in (1, 2):
        server = grpc.aio.server()
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        names.write_text(json.dumps({"etcd-0.etcd.shop": {"addresses": ["127.0.0.1"], "ports": {"2379": port}}}))
        assert await member.ready(10.0), f"address {number}"
        await server.stop(None)
    await member.close()

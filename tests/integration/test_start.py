"""What a server has from its first second."""

from __future__ import annotations

from pathlib import Path

from karmada.kube.server.app import ApiServer
from karmada.kube.server.config import ServerConfig
from tests.support.counting import counted_calls
from tests.support.wire import Http


async def test_a_fresh_server_has_its_default_objects(http: Http) -> None:
    namespaces = (await http("GET", "/api/v1/namespaces")).json()
    assert [n["metadata"]["name"] for n in namespaces["items"]] == [
        "default", "kube-node-lease", "kube-public", "kube-system",
    ]  # fmt: skip
    service = (await http("GET", "/api/v1/namespaces/default/services/kubernetes")).json()
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    assert (await http("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")).code == 200
    assert (await http("GET", "/readyz")).body == b"ok"


async def test_another_start_on_the_same_certificates_takes_a_moment(certificates: Path) -> None:
    first = ApiServer(ServerConfig(data_dir=certificates, storage="memory://", port=0))
    await first.start()
    await first.stop()
    with counted_calls() as calls:
        server = ApiServer(ServerConfig(data_dir=certificates, storage="memory://", port=0))
        await server.start()
    await server.stop()
    assert calls.count < 150_000

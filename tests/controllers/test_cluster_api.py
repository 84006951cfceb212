"""The management cluster is a server with Cluster API's kind; the clusters it lists are servers of their own."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from karmada.api.cluster import Cluster
from karmada.controllers.cluster.controller import Clusters
from karmada.controllers.cluster_api import MANAGED, ORIGIN, ClusterApi
from karmada.controllers.context import Context
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import CRDS, SECRETS
from karmada.kube.runtime.keys import Key
from tests.support.control_plane import ControlPlane, running
from tests.support.custom_kinds import definition, version
from tests.support.eventually import eventually
from tests.support.member_server import MemberServer, member_server
from tests.support.objects import kube_object

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def define_clusters(management: MemberServer) -> None:
    schema = {"type": "object", "properties": {"spec": _OPEN, "status": _OPEN}}
    await management.client.create(CRDS, definition(MANAGED.group, "Cluster", version("v1beta1", schema)))
    await eventually(lambda: management.server.registry.get(MANAGED) is not None)


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def provision(management: MemberServer, name: str, kubeconfig: Path, phase: str = "Provisioned") -> None:
    value = encoded(kubeconfig)
    secret = kube_object("v1", "Secret", f"{name}-kubeconfig", data={"value": value})
    await management.client.create(SECRETS, secret, "default")
    obj = kube_object("cluster.x-k8s.io/v1beta1", "Cluster", name, spec={})
    await management.client.create(MANAGED, {**obj, "status": {"phase": phase}}, "default")


def parts(management: MemberServer) -> Callable[[Context], list[Any]]:
    return lambda context: [ClusterApi(context, management.kubeconfig), Clusters(context)]


def joined(plane: ControlPlane, name: str) -> dict[str, Any] | None:
    return plane.context.informers.of(Cluster.gvr).get(Key("", name))


async def test_a_provisioned_cluster_joins_and_a_deleted_one_leaves(tmp_path: Path) -> None:
    async with member_server(tmp_path / "management") as management, member_server(tmp_path / "m1") as member:
        await define_clusters(management)
        async with running(tmp_path / "plane", parts(management), clock=RealClock()) as plane:
            await provision(management, "m1", member.kubeconfig)
            found = await eventually(lambda: joined(plane, "m1"))
            assert found["spec"]["apiEndpoint"] == member.server.url
            await eventually(
                lambda: (joined(plane, "m1") or found)["metadata"].get("annotations", {}).get(ORIGIN) == "default/m1"
            )
            await management.client.delete(MANAGED, "m1", "default")
            await eventually(lambda: joined(plane, "m1") is None)


async def test_a_cluster_that_is_not_provisioned_waits(tmp_path: Path) -> None:
    async with member_server(tmp_path / "management") as management, member_server(tmp_path / "m1") as member:
        await define_clusters(management)
        async with running(tmp_path / "plane", parts(management), clock=RealClock()) as plane:
            await provision(management, "m1", member.kubeconfig, phase="Provisioning")
            await provision(management, "m2", member.kubeconfig)
            await eventually(lambda: joined(plane, "m2"))
            assert joined(plane, "m1") is None


async def test_a_cluster_deleted_there_while_nobody_looked_leaves_later(tmp_path: Path) -> None:
    async with member_server(tmp_path / "management") as management, member_server(tmp_path / "m1"):
        await define_clusters(management)
        async with running(tmp_path / "plane", lambda context: [Clusters(context)], clock=RealClock()) as plane:
            await plane.add_cluster("gone", apiEndpoint="https://127.0.0.1:1")
            await plane.add_cluster("other", apiEndpoint="https://127.0.0.1:1")
            patch = {"metadata": {"annotations": {ORIGIN: "default/gone"}}}
            await plane.client.patch(Cluster.gvr, "gone", "", patch, type="merge")
            await eventually(lambda: (joined(plane, "gone") or {"metadata": {}})["metadata"].get("annotations"))
            follower = ClusterApi(plane.context, management.kubeconfig)
            await follower.start()
            await eventually(lambda: joined(plane, "gone") is None)
            assert joined(plane, "other") is not None
            await follower.stop()


async def test_a_management_cluster_that_is_away_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with member_server(tmp_path / "management") as management:
        kubeconfig = tmp_path / "away.config"
        kubeconfig.write_text(management.kubeconfig.read_text())

    def away(context: Context) -> list[Any]:
        return [ClusterApi(context, kubeconfig), Clusters(context)]

    async with running(tmp_path / "plane", away, clock=RealClock()) as plane:
        await plane.add_cluster("m1")
        await eventually(lambda: (joined(plane, "m1") or {"metadata": {}})["metadata"].get("finalizers"))

"""Two replicas of the controllers over one API server: each does its part, together they do everything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from karmada.api.policy import ClusterPropagationPolicy
from karmada.api.work import ResourceBinding
from karmada.components.election import CONTROLLERS, NAMESPACE
from karmada.components.process import Process
from karmada.components.sharing import Sharing
from karmada.controllers.context import CONTROLLER_MANAGER
from karmada.features import default_gates
from karmada.joining.join import Joining, join
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import CONFIG_MAPS, LEASES, NAMESPACES
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.membership import Membership
from karmada.kube.server.app import ApiServer
from tests.support.eventually import eventually
from tests.support.karmada_server import serving
from tests.support.member_server import member_server
from tests.support.running import run_component, unhurried

SPACES = [f"team-{number}" for number in range(24)]
"""Enough that no replica, whose name is random, has none of them: of eight one had none in 1 of 128 runs."""


@asynccontextmanager
async def replica(server: ApiServer, name: str, *, share: bool = True) -> AsyncIterator[Process]:
    election = unhurried(CONTROLLERS)
    sharing = Sharing(election=election, replica=name) if share else None
    process = Process(load_config(server.kubeconfig), CONTROLLER_MANAGER, default_gates(), sharing=sharing)
    if sharing is None:
        process.assembly.add_controllers(election)
    async with run_component(process):
        yield process


def membership(process: Process) -> Membership:
    assert process._membership is not None
    return process._membership


def owned(process: Process) -> set[str]:
    return {space for space in SPACES if membership(process).owns(f"namespace/{space}")}


def policy(*clusters: str) -> Obj:
    return {
        "metadata": {"name": "everywhere"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
        },
    }


async def bound_to(client: Client, *clusters: str) -> bool:
    """Whether the template of every namespace has a binding with this placement."""
    bindings, _ = await client.list_all(ResourceBinding.gvr)
    wanted = {"clusterNames": list(clusters)}
    found = {meta.namespace(obj) for obj in bindings if obj["spec"]["placement"]["clusterAffinity"] == wanted}
    return found >= set(SPACES)


async def test_a_cluster_wide_policy_reaches_the_templates_of_every_replica(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, replica(server, "one") as one, replica(server, "two") as two:
        client = server.client(user_agent="tests")
        for space in SPACES:
            await client.create(NAMESPACES, {"metadata": {"name": space}})
            await client.create(CONFIG_MAPS, {"metadata": {"name": "settings", "namespace": space}})
        await eventually(lambda: owned(one) | owned(two) == set(SPACES) and owned(one) and owned(two))
        assert not owned(one) & owned(two)
        made = await client.create(ClusterPropagationPolicy.gvr, policy("m1"))
        await eventually(lambda: bound_to(client, "m1"))
        current = await client.get(ClusterPropagationPolicy.gvr, meta.name(made))
        await client.update(ClusterPropagationPolicy.gvr, {**current, "spec": policy("m2")["spec"]})
        await eventually(lambda: bound_to(client, "m2"))


def watches(process: Process, cluster: str) -> bool:
    member = process.assembly.context.members.known(cluster)
    return member is not None and bool(member.informers.all())


async def test_only_the_replica_that_has_a_cluster_watches_it(tmp_path: Path) -> None:
    async with serving(tmp_path / "plane") as server, member_server(tmp_path / "m1") as member:
        client = server.client(user_agent="tests")
        async with replica(server, "one") as one:
            await join(client, member.client, Joining.to(member.config, "m1"))
            await eventually(lambda: watches(one, "m1"))
            async with replica(server, "two") as two:
                await eventually(lambda: len(membership(one).members) == len(membership(two).members) == 2)
                owner, other = (one, two) if membership(one).owns("cluster/m1") else (two, one)
                await eventually(lambda: watches(owner, "m1") and not watches(other, "m1"))
            await eventually(lambda: watches(one, "m1"))


async def test_a_replica_that_leads_stands_by_while_others_share(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        client = server.client(user_agent="tests")
        async with replica(server, "one") as one:
            await eventually(lambda: owned(one) == set(SPACES))
            async with replica(server, "lone", share=False) as lone:
                await eventually(lambda: lone.manager._stood.is_set())
                assert not lone.manager.controllers["binding-controller"].queue.takes_keys
                lease = await client.get(LEASES, CONTROLLERS, NAMESPACE)
                assert lease["spec"]["holderIdentity"] == "karmada-controller-manager-shared"
        left = await client.get(LEASES, CONTROLLERS, NAMESPACE)
        assert left["spec"]["holderIdentity"] == "", "the last member has released it"


async def test_replicas_that_share_stand_by_while_one_leads(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, replica(server, "lone", share=False) as lone:
        await eventually(lambda: lone.manager.controllers["binding-controller"].queue.takes_keys)
        async with replica(server, "one") as one:
            await eventually(lambda: one.manager._stood.is_set())
            assert not one.manager.controllers["binding-controller"].queue.takes_keys
            assert not owned(one)

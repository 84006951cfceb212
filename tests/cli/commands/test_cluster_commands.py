"""join, unjoin, cordon, uncordon and taint against real servers over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from karmada.api.cluster import Cluster
from karmada.cli.commands.cordon import cordon, uncordon
from karmada.cli.commands.join import join
from karmada.cli.commands.taint import taint
from karmada.cli.commands.unjoin import unjoin
from karmada.controllers.cluster.controller import Clusters
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.gvrs import ACCOUNTS, NAMESPACES
from karmada.kube.runtime.keys import Key
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.eventually import eventually
from tests.support.karmadactl import said
from tests.support.member_server import MemberServer, member_server


@dataclass
class Fleet:
    plane: ControlPlane
    member: MemberServer

    async def run(self, command: click.Command, *args: str) -> Result:
        """A command in a thread of its own, towards this control plane."""
        words = [*args, "--kubeconfig", str(self.plane.server.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, command, words)

    async def join(self, *args: str) -> Result:
        return await self.run(join, "m1", "--cluster-kubeconfig", str(self.member.kubeconfig), *args)

    async def taints(self, name: str = "m1") -> list[str]:
        cluster = await self.plane.client.get(Cluster.gvr, name)
        return [f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in cluster["spec"].get("taints") or ()]


@pytest.fixture
async def fleet(folder: Path) -> AsyncIterator[Fleet]:
    async with (
        running(folder / "control-plane", lambda context: [Clusters(context)], clock=RealClock()) as plane,
        member_server(folder / "member", context="m1") as member,
    ):
        yield Fleet(plane, member)


@pytest.fixture
async def bare(folder: Path) -> AsyncIterator[Fleet]:
    """Without controllers, which have taints of their own to set; two clusters."""
    async with (
        running(folder / "control-plane", clock=RealClock()) as plane,
        member_server(folder / "member", context="m1") as member,
    ):
        for name in ("m1", "m2"):
            await plane.add_cluster(name)
        yield Fleet(plane, member)


# join


async def test_join_and_unjoin(fleet: Fleet) -> None:
    result = await fleet.join("--cluster-region", "eu", "--cluster-zones", "a,b", "--cluster-zones", "c")
    assert said(result) == (0, "cluster(m1) is joined successfully\n", "")
    cluster = await fleet.plane.client.get(Cluster.gvr, "m1")
    assert (cluster["spec"]["region"], cluster["spec"]["zones"]) == ("eu", ["a", "b", "c"])
    clusters = fleet.plane.context.informers.of(Cluster.gvr)
    await eventually(lambda: (clusters.get(Key("", "m1")) or {"metadata": {}})["metadata"].get("finalizers"))
    result = await fleet.run(unjoin, "m1", "--cluster-kubeconfig", str(fleet.member.kubeconfig))
    propagated = "propagated resources are removed from the cluster"
    accounts = "service accounts and RBAC of the control plane are removed from the cluster"
    assert said(result) == (0, f"cluster(m1) is unjoined successfully: {propagated}; {accounts}\n", "")
    assert await fleet.plane.get(Cluster.gvr, "m1") is None
    assert await fleet.member.get(ACCOUNTS, "karmada-m1", "karmada-cluster") is None


async def test_join_twice_is_refused(fleet: Fleet) -> None:
    await fleet.join()
    result = await fleet.join()
    assert result.exit_code == 1
    assert result.stderr.startswith("error: the cluster ID ")
    assert result.stderr.endswith(" or the cluster name m1 has been registered\n")
    assert result.stdout == ""


async def test_join_as_a_trial(fleet: Fleet) -> None:
    assert said(await fleet.join("--dry-run")) == (0, "", "")
    assert await fleet.plane.get(Cluster.gvr, "m1") is None
    assert await fleet.member.get(NAMESPACES, "karmada-cluster") is None


async def test_join_as_somebody_else(fleet: Fleet) -> None:
    result = await fleet.join("--karmada-as", "nobody", "--karmada-as-group", "some,body")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error from server (Forbidden): ")
    assert 'User "nobody" cannot list resource "clusters"' in result.stderr


async def test_join_to_the_reserved_namespace_warns(fleet: Fleet) -> None:
    result = await fleet.join("--cluster-namespace", "karmada-system")
    assert result.exit_code == 0
    assert "karmada-system" in result.stderr


@cases(
    ([], "error: cluster name is required\n"),
    ([""], "error: cluster name is required\n"),
    (["a", "b"], "error: only the cluster name is allowed as an argument\n"),
    (["a" * 49], f"error: invalid cluster name({'a' * 49}): must be no more than 48 characters\n"),
)
def test_join_needs_one_good_name(args: list[str], message: str) -> None:
    assert said(CliRunner().invoke(join, args)) == (1, "", message)


def test_join_says_what_is_wrong_with_a_name() -> None:
    result = CliRunner().invoke(join, ["No_Name"])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: invalid cluster name(No_Name): a lowercase RFC 1123 label")


async def test_a_server_that_is_not_there_is_reported_in_one_line(fleet: Fleet, tmp_path: Path) -> None:
    text = fleet.member.kubeconfig.read_text().replace(str(fleet.member.server.port), "1")
    (tmp_path / "config").write_text(text)
    result = await fleet.run(join, "m1", "--cluster-kubeconfig", str(tmp_path / "config"))
    refused = "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?\n"
    assert said(result) == (1, "", refused)


# unjoin


async def test_unjoin_of_nothing(fleet: Fleet) -> None:
    assert said(await fleet.run(unjoin, "m9")) == (
        1,
        "",
        "error: no cluster object m9 found in karmada control Plane\n",
    )


async def test_unjoin_of_a_pull_cluster(fleet: Fleet) -> None:
    await fleet.plane.add_cluster("m1", "Pull")
    result = await fleet.run(unjoin, "m1")
    assert result.exit_code == 1
    assert "is a Pull mode member cluster, please use command `unregister`" in result.stderr


async def test_unjoin_takes_the_context_of_the_clusters_name(fleet: Fleet) -> None:
    await fleet.plane.add_cluster("m2")
    result = await fleet.run(unjoin, "m2", "--cluster-kubeconfig", str(fleet.member.kubeconfig))
    assert result.exit_code == 1
    assert 'context "m2" does not exist (known: m1)' in result.stderr


@cases(
    ([], "error: cluster name is required\n"),
    (["a", "b"], "error: only the cluster name is allowed as an argument\n"),
    (["a", "--wait", "0s"], "error: --wait 0s must be a positive duration, e.g. 1m0s\n"),
)
def test_unjoin_needs_one_name_and_some_time(args: list[str], message: str) -> None:
    assert said(CliRunner().invoke(unjoin, args)) == (1, "", message)


async def test_unjoin_by_force_after_the_wait(bare: Fleet) -> None:
    """Nobody is there to let the cluster go."""
    finalizers = {"metadata": {"finalizers": ["karmada.io/cluster-controller"]}}
    await bare.plane.client.patch(Cluster.gvr, "m1", "", finalizers)
    result = await bare.run(unjoin, "m1", "--wait", "10ms")
    assert said(result) == (1, "", "error: timed out waiting for cluster m1 to be deleted, after 0.01s\n")
    forced = await bare.run(unjoin, "m1", "--wait", "10ms", "--force")
    assert (forced.exit_code, forced.stderr) == (0, "")
    assert "propagated resources may remain in the cluster, since the deletion was forced" in forced.stdout
    assert "RBAC of the control plane remain in the cluster (--cluster-kubeconfig removes them)" in forced.stdout
    assert await bare.plane.get(Cluster.gvr, "m1") is None


# cordon and taint


async def test_cordon_and_uncordon(bare: Fleet) -> None:
    assert said(await bare.run(cordon, "m1", "--dry-run")) == (0, "m1 cluster cordoned\n", "")
    assert await bare.taints() == []
    assert said(await bare.run(cordon, "m1")) == (0, "m1 cluster cordoned\n", "")
    assert await bare.taints() == ["cluster.karmada.io/unschedulable=:NoSchedule"]
    (one,) = (await bare.plane.client.get(Cluster.gvr, "m1"))["spec"]["taints"]
    assert "timeAdded" not in one
    assert said(await bare.run(cordon, "m1")) == (0, "m1 cluster already cordoned\n", "")
    assert said(await bare.run(uncordon, "m1")) == (0, "m1 cluster uncordoned\n", "")
    assert await bare.taints() == []
    assert said(await bare.run(uncordon, "m1")) == (0, "m1 cluster already uncordoned\n", "")


@cases(cordon, uncordon)
async def test_cordon_needs_one_cluster_that_exists(command: click.Command, bare: Fleet) -> None:
    assert said(await bare.run(command)) == (1, "", "error: cluster name is required\n")
    assert said(await bare.run(command, "a", "b")) == (1, "", "error: more than one cluster name is not supported\n")
    missing = 'Error from server (NotFound): clusters.cluster.karmada.io "m9" not found\n'
    assert said(await bare.run(command, "m9")) == (1, "", missing)


async def test_taint_sets_changes_and_removes(bare: Fleet) -> None:
    result = await bare.run(taint, "clusters", "m1", "m2", "a=1:NoSchedule")
    assert said(result) == (0, "cluster/m1 tainted\ncluster/m2 tainted\n", "")
    assert said(await bare.run(taint, "cluster", "m1", "b:NoExecute")) == (0, "cluster/m1 tainted\n", "")
    assert await bare.taints() == ["b=:NoExecute", "a=1:NoSchedule"]
    result = await bare.run(taint, "cluster", "m1", "a=2:NoSchedule", "--overwrite")
    assert said(result) == (0, "cluster/m1 modified\n", "")
    assert await bare.taints() == ["a=2:NoSchedule", "b=:NoExecute"]
    assert said(await bare.run(taint, "cluster", "m1", "a-", "b:NoExecute-")) == (0, "cluster/m1 untainted\n", "")
    assert await bare.taints() == []
    result = await bare.run(taint, "cluster", "m1", "a:NoSchedule", "--dry-run")
    assert said(result) == (0, "cluster/m1 tainted\n", "")
    assert await bare.taints() == []


async def test_taint_goes_on_with_the_other_clusters(bare: Fleet) -> None:
    await bare.run(taint, "cluster", "m1", "a:NoSchedule")
    result = await bare.run(taint, "cluster", "m1", "m9", "m2", "a:NoSchedule")
    assert said(result) == (
        1,
        "cluster/m2 tainted\n",
        "error: cluster m1 already has a taint(s) with same effect(s) and --overwrite is false\n"
        'Error from server (NotFound): clusters.cluster.karmada.io "m9" not found\n',
    )


async def test_an_effect_that_clusters_do_not_have_is_refused_by_the_server(bare: Fleet) -> None:
    result = await bare.run(taint, "cluster", "m1", "a:PreferNoSchedule")
    assert result.exit_code == 1
    assert 'The Cluster "m1" is invalid: spec.taints[0].effect: Unsupported value' in result.stderr


async def test_taint_refuses_words_that_make_no_sense(bare: Fleet) -> None:
    result = await bare.run(taint, "node", "m1", "a:NoSchedule")
    assert said(result) == (1, "", 'error: invalid resource type node, only ["cluster" "clusters"] are supported\n')

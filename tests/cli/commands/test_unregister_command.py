"""unregister: what registering created is gone again, on both sides."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from karmada.api.cluster import Cluster
from karmada.api.work import Work
from karmada.cli.commands.unregister import _delete_local_files
from karmada.joining.join import cluster_id_of
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.objects import kube_object
from tests.support.registering import PHASES, Pair, registering_pair


@pytest.fixture
async def pair(folder: Path) -> AsyncIterator[Pair]:
    async with registering_pair(folder) as pair:
        yield pair


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unregistered(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    """With a member that was joined. For what is refused, so that all may use it; kubeconfigs of its own."""
    async with registering_pair(tmp_path_factory.mktemp("unregistered")) as pair:
        await pair.plane.add_cluster("pushed", "Push")
        yield pair


@pytest.fixture
async def registered(pair: Pair) -> Pair:
    """With a Cluster, as an agent would have created it, and a Work."""
    assert (await pair.register())[0] == 0
    await pair.plane.add_cluster("m1", "Pull", id=await cluster_id_of(pair.member))
    await pair.plane.set_ready("m1", "True")
    await pair.plane.client.create(Work.gvr, work("w"))
    return pair


def work(name: str, *finalizers: str) -> Obj:
    return kube_object(Work.gvk.api_version, "Work", name, "karmada-es-m1", finalizers=list(finalizers)) | {
        "spec": {"workload": {"manifests": []}}
    }


def leaving(pair: Pair, *words: str) -> tuple[str, ...]:
    return ("unregister", "m1", "--cluster-kubeconfig", str(pair.sim.kubeconfig), *words)


async def test_unregistering_leaves_no_trace_but_the_namespace_of_the_agent(registered: Pair) -> None:
    pair = registered
    words = ("--karmada-config", str(pair.plane.server.kubeconfig))
    code, out, err = await pair.run(*leaving(pair, *words))
    assert (code, out, err) == (0, "cluster(m1) is unregistered successfully\n", "")

    async def traces() -> set[str]:
        found = await pair.state()
        return {name for names in found.values() for name in names if "m1" in name}

    async def no_trace() -> bool:
        return not await traces()

    await eventually(no_trace)
    found = await pair.state()
    assert not {n for n in found["deployments of the member"] if "karmada" in n}
    assert not {n for n in found["clusterroles of the member"] if "karmada" in n}
    assert not {n for n in found["clusterrolebindings of the member"] if "karmada" in n}
    assert {n for n in found["secrets of the member"] if n.startswith("karmada-")} == set()
    assert {n for n in found["serviceaccounts of the member"] if "karmada-agent" in n} == set()
    assert "/karmada-system" in found["namespaces of the member"]
    assert (await pair.register())[:2] == (0, PHASES)


async def test_the_agents_own_kubeconfig_can_unregister_but_its_rights_stay(registered: Pair) -> None:
    code, out, err = await registered.run(*leaving(registered))
    assert (code, out) == (0, "cluster(m1) is unregistered successfully\n")
    assert err == (
        "warning: delete these in the control plane, which the agent may not:\n"
        "ClusterRole/system:karmada:m1:agent\n"
        "ClusterRoleBinding/system:karmada:m1:agent\n"
        "Role/karmada-cluster/system:karmada:m1:agent-secret\n"
        "Role/karmada-es-m1/system:karmada:m1:agent-work\n"
        "RoleBinding/karmada-cluster/system:karmada:m1:agent-secret\n"
        "RoleBinding/karmada-es-m1/system:karmada:m1:agent-work\n"
        "Lease/karmada-system/karmada-agent-m1\n"
    )
    assert (await registered.plane.get(Cluster.gvr, "m1")) is None


async def test_a_cluster_that_is_not_there_any_more_leaves_no_trace_either(pair: Pair) -> None:
    """Deleted by hand, or never created by an agent that does not start."""
    assert (await pair.register())[0] == 0
    words = ("--karmada-config", str(pair.plane.server.kubeconfig))
    other = ("unregister", "m2", "--cluster-kubeconfig", str(pair.sim.kubeconfig), *words)
    assert await pair.run(*other) == (1, "", "error: no cluster object m2 found in karmada control Plane\n")
    code, out, err = await pair.run(*leaving(pair, *words))
    assert (code, out, err) == (0, "cluster(m1) is unregistered successfully\n", "")
    assert (await pair.register())[:2] == (0, PHASES)


async def test_a_dry_run_of_unregistering_changes_nothing(registered: Pair) -> None:
    before = await registered.state()
    code, out, _ = await registered.run(*leaving(registered, "--dry-run"))
    assert (code, out) == (0, "cluster(m1) would be unregistered (dry run)\n")
    assert await registered.state() == before


async def test_works_that_no_agent_cleans_up_keep_the_cluster(registered: Pair) -> None:
    await registered.plane.client.create(Work.gvr, work("stuck", "karmada.io/execution-controller"))
    code, _, err = await registered.run(*leaving(registered, "--wait=1s"))
    assert code == 1
    assert err.startswith("error: the works of cluster m1 are not deleted after 1s: is its agent running?")
    assert await registered.plane.get(Cluster.gvr, "m1")
    assert await registered.member.get(DEPLOYMENTS, "karmada-agent", "karmada-system")


@cases(
    ([], "cluster name is required"),
    (["a", "b"], "only the cluster name is allowed as an argument"),
    (["A"], "invalid cluster name(A): "),
    (["m1"], "--cluster-kubeconfig is required to specify KUBECONFIG file path to access unregistering member"),
    (["m1", "--cluster-kubeconfig=MEMBER", "--wait=0s"], "--wait 0s must be a positive duration, e.g. 1m0s"),
    (["m1", "--cluster-kubeconfig=MEMBER"], "failed to get deployment karmada-agent in member cluster: "),
    (["m9", "--cluster-kubeconfig=MEMBER", "--karmada-config=PLANE"], "no cluster object m9 found in karmada"),
    (
        ["pushed", "--cluster-kubeconfig=MEMBER", "--karmada-config=PLANE"],
        "cluster pushed is a Push mode member cluster, please use command `unjoin` if you want to continue",
    ),
)
@pytest.mark.asyncio(loop_scope="module")
async def test_what_cannot_be_unregistered_is_refused(words: list[str], message: str, unregistered: Pair) -> None:
    files = {"MEMBER": str(unregistered.sim.kubeconfig), "PLANE": str(unregistered.plane.server.kubeconfig)}
    given = [re.sub("MEMBER|PLANE", lambda found: files[found[0]], word) for word in words]
    code, out, err = await unregistered.run("unregister", *given)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")


async def test_unjoin_points_to_unregister(pair: Pair) -> None:
    await pair.plane.add_cluster("m1", "Pull")
    code, _, err = await pair.run("unjoin", "m1", "--kubeconfig", str(pair.plane.server.kubeconfig))
    assert code == 1
    assert "cluster m1 is a Pull mode member cluster, please use command `unregister`" in err


def test_local_files_of_an_agent_are_deleted_but_no_authority_of_a_control_plane(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    agent, authority, key = tmp_path / "karmada-agent.conf", tmp_path / "pki/ca.crt", tmp_path / "pki/ca.key"
    for path in (agent, authority, key):
        path.touch()
    _delete_local_files(tmp_path)
    assert (agent.exists(), authority.exists()) == (False, True)
    key.unlink()
    _delete_local_files(tmp_path)
    assert not authority.exists()

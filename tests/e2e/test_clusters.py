"""Clusters join a control plane, are health checked, become not ready and leave: real processes, as people use them."""

from __future__ import annotations

import base64
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada.api.cluster import Cluster
from karmada.kube.objects.gvrs import NAMESPACES, SECRETS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.admin_client import AdminClient
from tests.e2e.fleets import Fleet, condition, taints
from tests.e2e.pasting import blocks
from tests.support import forking
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.programs import Program, ServerProcess

pytestmark = pytest.mark.e2e

NOT_READY = "cluster.karmada.io/not-ready:NoSchedule"
OURS = "karmada-controller-manager:karmada-"
PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
Made = Callable[..., str]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Fleet]:
    with Fleet(tmp_path_factory.mktemp("clusters"), kubectl_path) as fleet:
        yield fleet


@pytest.fixture
def made(fleet: Fleet) -> Iterator[Made]:
    """Makes a simulated cluster, joined by default; what is left at the end goes."""
    names: list[str] = []

    def make(*flags: str, joined: bool = True) -> str:
        name = f"m-{uuid.uuid4().hex[:8]}"
        names.append(name)
        fleet.create(name, *flags)
        if joined:
            fleet.join_all(name)
        return name

    yield make
    fleet.ours("delete", "clusters", *names, "--ignore-not-found", "--wait=false")
    for name in names:
        fleet.until_gone(Cluster.gvr, name)
    fleet.sims.ctl("delete", *names)


@pytest.fixture(scope="module")
def crowd(fleet: Fleet) -> list[str]:
    """Twenty-five clusters that are ready, and that a test leaves so."""
    names = [f"crowd-{number:02}" for number in range(25)]
    fleet.create(*names, "--nodes=1")
    fleet.join_all(*names)
    for name in names:
        fleet.until(name, lambda cluster: node_count(cluster) == 1 and not taints(cluster))
    return names


def node_count(cluster: Obj) -> Any:
    return ((cluster.get("status") or {}).get("nodeSummary") or {}).get("totalNum")


def change_secret(fleet: Fleet, name: str, change: Obj) -> None:
    fleet.ours("-n", "karmada-cluster", "patch", "secret", name, "--type=merge", "-p", json.dumps(change))


def left_behind(member: Program, name: str) -> list[str]:
    """What joining made in a member and is still there."""
    kinds = "namespaces,clusterroles,clusterrolebindings"
    found = member("get", kinds, "-o", "name").out.split()
    return [each for each in found if each.endswith(("/karmada-cluster", f"/{OURS}{name}"))]


def proxied(name: str, path: str) -> str:
    return f"/apis/cluster.karmada.io/v1alpha1/clusters/{name}/proxy{path}"


# joining


def test_a_cluster_that_joins_is_ready_with_all_that_was_said_of_it(fleet: Fleet, made: Made) -> None:
    name = made(joined=False)
    output = fleet.join(name, "--cluster-region=eu", "--cluster-zones=eu-a,eu-b", "--cluster-provider=lab")
    fleet.until_ready(name)
    assert output.out == f"cluster({name}) is joined successfully\n"
    cluster = fleet.until(name, lambda cluster: node_count(cluster) == 3)
    assert cluster["metadata"]["finalizers"] == ["karmada.io/cluster-controller"]
    assert condition(cluster, "CompleteAPIEnablements")["reason"] == "Complete"
    assert len(cluster["spec"]["resourceModels"]) == len(cluster["status"]["resourceSummary"]["allocatableModelings"])
    fleet.until(name, lambda cluster: taints(cluster) == [])
    again = fleet.join(name, check=False)
    assert again.code == 1
    assert again.err.endswith(f"or the cluster name {name} has been registered\n")


def test_clusters_are_listed_and_described(fleet: Fleet, made: Made) -> None:
    name = made("--kubernetes-version=1.34", joined=False)
    fleet.join(name, "--cluster-region=eu", "--cluster-zones=eu-a,eu-b")
    fleet.until(name, lambda cluster: node_count(cluster) and not taints(cluster))
    heads, row = fleet.kubectl("get", "cluster", name).lines
    assert heads.split() == ["NAME", "VERSION", "MODE", "READY", "AGE"]
    assert re.fullmatch(rf"{name} +v1\.34\.\d+ +Push +True +\d+s *", row)
    heads, row = fleet.kubectl("get", "cluster", name, "-o", "wide").lines
    assert heads.split()[5:] == ["ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "PROXY-URL"]
    endpoint = fleet.cluster(name)["spec"]["apiEndpoint"]
    assert row.split()[5:] == ["eu-a,eu-b", "eu", "<none>", endpoint, "<none>"]
    output = fleet.kubectl("describe", "cluster", name).out
    for piece in (
        "cluster is healthy and ready to accept workloads",
        f"Created execution space(karmada-es-{name}) for cluster({name}).",
        "Taint cluster succeed: cluster now does not have taints.",
    ):
        assert piece in output
    assert f'cluster_ready_state{{member_cluster="{name}"}} 1.0' in fleet.kubectl("get", "--raw", "/metrics").lines


def test_a_plain_api_server_is_a_member_and_may_be_upgraded(fleet: Fleet, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "plain", ["--kubernetes-version", "1.34"])
    server.start()
    try:
        fleet.join("plain", kubeconfig=server.kubeconfig)
        fleet.until_ready("plain")
        assert fleet.until("plain", lambda c: node_count(c) == 0)["status"]["kubernetesVersion"] == "v1.34.0"
        server.stop()
        server.arguments = ["--kubernetes-version", "1.36"]
        server.start()
        fleet.until("plain", lambda cluster: cluster["status"]["kubernetesVersion"] == "v1.36.0")
        fleet.until_ready("plain")
        fleet.ctl(
            "unjoin", "plain", "--cluster-kubeconfig", str(server.kubeconfig), "--cluster-context=karmada-apiserver"
        )
        assert fleet.get(Cluster.gvr, "plain") is None
        member = Karmadactl(tmp_path, server.kubeconfig)
        eventually_blocking(lambda: left_behind(member, "plain") == [])
    finally:
        fleet.kubectl("delete", "cluster", "plain", "--ignore-not-found", "--wait=false")
        server.stop()


# credentials


def test_a_member_made_anew_at_its_address_is_reached_with_its_kubeconfig(fleet: Fleet, made: Made) -> None:
    name = made("--kubernetes-version=1.36")
    fleet.until(name, lambda cluster: node_count(cluster) == 3)
    endpoint = fleet.cluster(name)["spec"]["apiEndpoint"]
    fleet.sims.ctl("delete", name)
    fleet.until_condition(name, "ClusterNotReachable")
    profile = {"name": name, "version": "1.33", "pools": [{"name": "node", "count": 2}]}
    stored = {"profile": profile, "port": int(endpoint.rsplit(":", 1)[1])}
    AdminClient(fleet.sims.folder).request("POST", "/clusters", stored)
    flags = ("config", "view", "--minify", "--flatten")
    whole = fleet.sims.kubectl(name)(*flags).out.encode()
    change_secret(fleet, name, {"data": {"kubeconfig": base64.b64encode(whole).decode()}})
    cluster = fleet.until(name, lambda cluster: cluster["status"]["kubernetesVersion"] == "v1.33.0")
    assert cluster["spec"]["apiEndpoint"] == endpoint
    fleet.until(name, lambda cluster: node_count(cluster) == 2)
    fleet.until_ready(name)


# what comes to every member


def test_namespaces_come_to_members_and_go(fleet: Fleet, made: Made) -> None:
    first = made()
    shared, kept = f"shop-{uuid.uuid4().hex[:6]}", f"kept-{uuid.uuid4().hex[:6]}"
    fleet.ours("create", "namespace", shared)
    label = {"namespace.karmada.io/skip-auto-propagation": "true"}
    mine = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kept, "labels": label}}
    fleet.ours("create", "-f", "-", stdin=json.dumps(mine))
    second = made()
    members = [fleet.sims.ours(name) for name in (first, second)]

    def namespaces(member: Program) -> set[str]:
        return {line.removeprefix("namespace/") for line in member("get", "namespaces", "-o", "name").lines}

    for member in members:
        eventually_blocking(lambda member=member: shared in namespaces(member))
        assert namespaces(member).isdisjoint({kept, "karmada-system", f"karmada-es-{first}", f"karmada-es-{second}"})
    fleet.ours("delete", "namespace", shared, kept)
    for member in members:
        eventually_blocking(lambda member=member: shared not in namespaces(member))


# the documentation


def test_what_the_page_about_clusters_says_can_be_pasted(fleet: Fleet) -> None:
    fleet.create("member1", "member2", "--nodes=1")
    home = fleet.sims.home
    (home / ".kube").mkdir(exist_ok=True)
    for place in (".kube/members.config", "members.config"):
        (home / place).symlink_to(fleet.sims.kubeconfig)
    alone = fleet.sims.kubectl("member2")("config", "view", "--minify", "--flatten").out
    (home / "member2.config").write_text(alone)
    steps = blocks(PAGE, "sh")
    lines = [line for step in steps for line in step.splitlines() if not line.startswith(("karmada ", "export "))]
    waiting = 'until kubectl get --raw "$NODES" >/dev/null 2>&1; do sleep 0.1; done'
    nodes = next(line for line in lines if "/proxy/api/v1/nodes" in line)
    lines.insert(lines.index(nodes), f"NODES={nodes.split()[-1]}; {waiting}")
    again = "karmadactl join member1 --cluster-kubeconfig members.config --cluster-context member1"
    lines.insert(next(i for i, line in enumerate(lines) if re.match(r"karmadactl unjoin member1 +#", line)), again)
    shell = Program(["bash", "-eu"], home, fleet.plane.kubeconfig)
    shell.env["PATH"] = forking.shell_path()
    done = shell("-c", f"cd\n{chr(10).join(lines)}")
    assert "cluster(member2) is joined successfully" in done.out
    assert 'cluster_ready_state{member_cluster="member1"}' in done.out
    assert fleet.get(Cluster.gvr, "member1") is None
    fleet.ctl("unjoin", "member2")


# leaving


def test_a_cluster_leaves_and_may_come_again(fleet: Fleet, made: Made) -> None:
    name = made(joined=False)
    member = fleet.sims.ours(name)
    fleet.join(name)
    output = fleet.ctl("unjoin", name).out
    assert output.startswith(f"cluster({name}) is unjoined successfully: propagated resources are removed")
    assert "remain in the cluster (--cluster-kubeconfig removes them)" in output
    assert fleet.get(Cluster.gvr, name) is None
    fleet.until_gone(NAMESPACES, f"karmada-es-{name}")
    assert len(left_behind(member, name)) == 3
    fleet.join(name)
    fleet.until_ready(name)
    fleet.ctl("unjoin", name, "--cluster-kubeconfig", str(fleet.sims.kubeconfig))
    eventually_blocking(lambda: left_behind(member, name) == [])
    secrets = fleet.kubectl("-n", "karmada-cluster", "get", "secrets", "-o", "name").out
    assert name not in secrets
    missing = fleet.ctl("unjoin", name, check=False)
    assert (missing.code, missing.err) == (1, f"error: no cluster object {name} found in karmada control Plane\n")


def test_a_deleted_cluster_takes_along_what_came_to_it(fleet: Fleet, made: Made) -> None:
    name = made()
    member, namespace = fleet.sims.kubectl(name), f"shop-{uuid.uuid4().hex[:6]}"
    fleet.ours("create", "namespace", namespace)
    member("wait", "--for=create", f"namespace/{namespace}", "--timeout=100s")
    assert fleet.kubectl("-n", f"karmada-es-{name}", "get", "works", "-o", "name").lines
    fleet.kubectl("delete", "cluster", name, "--timeout=100s")
    member("wait", "--for=delete", f"namespace/{namespace}", "--timeout=100s")
    fleet.until_gone(NAMESPACES, f"karmada-es-{name}")
    fleet.ours("delete", "namespace", namespace)


def test_a_dead_cluster_leaves_when_it_is_known_to_be_dead(fleet: Fleet, made: Made) -> None:
    name = made()
    fleet.sims.ctl("fail", name, "down")
    fleet.ctl("unjoin", name, "--wait=20s")
    assert fleet.get(Cluster.gvr, name) is None
    fleet.sims.ctl("heal", name)


def test_a_cluster_that_hangs_is_waited_for_and_then_forced_out(fleet: Fleet, made: Made) -> None:
    name, namespace = made(), f"shop-{uuid.uuid4().hex[:6]}"
    fleet.ours("create", "namespace", namespace)
    fleet.sims.kubectl(name)("wait", "--for=create", f"namespace/{namespace}", "--timeout=100s")
    fleet.sims.ctl("fail", name, "black-hole", "--resource=namespaces")  # healthy, but cannot be cleaned up
    late = fleet.ctl("unjoin", name, "--wait=200ms", check=False)
    assert (late.code, late.err) == (1, f"error: timed out waiting for cluster {name} to be deleted, after 0.2s\n")
    assert "deletionTimestamp" in fleet.cluster(name)["metadata"]
    began = time.monotonic()
    fleet.ctl("unjoin", name, "--wait=1s", "--force", "--cluster-kubeconfig", str(fleet.sims.kubeconfig))
    assert time.monotonic() - began < LIMIT
    fleet.until_gone(Cluster.gvr, name)
    fleet.until_gone(NAMESPACES, f"karmada-es-{name}")
    fleet.sims.ctl("heal", name)
    fleet.ours("delete", "namespace", namespace)


# with a crowd, which costs CPU time from here on: what is made for one test comes first


def test_a_cluster_is_cordoned_and_tainted(fleet: Fleet, crowd: list[str]) -> None:
    name = crowd[12]
    assert fleet.ctl("cordon", name).out == f"{name} cluster cordoned\n"
    assert taints(fleet.cluster(name)) == ["cluster.karmada.io/unschedulable:NoSchedule"]
    assert fleet.ctl("cordon", name).out == f"{name} cluster already cordoned\n"
    assert fleet.ctl("taint", "cluster", name, "maintenance=tonight:NoExecute").out == f"cluster/{name} tainted\n"
    assert fleet.ctl("uncordon", name).out == f"{name} cluster uncordoned\n"
    (taint,) = fleet.cluster(name)["spec"]["taints"]
    assert (taint["key"], taint["value"], taint["effect"]) == ("maintenance", "tonight", "NoExecute")
    assert taint["timeAdded"]
    refused = fleet.ctl("taint", "cluster", name, "maintenance=tomorrow:NoExecute", check=False)
    assert refused.code == 1
    assert "--overwrite is false" in refused.err
    assert fleet.ctl("taint", "cluster", name, "maintenance-").out == f"cluster/{name} untainted\n"
    assert taints(fleet.cluster(name)) == []


NOT_REACHABLE = ("Ready", "ClusterNotReachable", "cluster is not reachable")
PARTIAL = ("CompleteAPIEnablements", "Partial", "might collect partial APIEnablements({known}) from the cluster")
FAULTS = (
    ("down", NOT_REACHABLE),
    ("black-hole", NOT_REACHABLE),
    ("partition", NOT_REACHABLE),
    ("unhealthy --code 500", NOT_REACHABLE),
    ("errors --code 401", NOT_REACHABLE),
    ("unhealthy --page /apis --code 503", PARTIAL),
    ("unhealthy --page /api --page /apis --code 503", PARTIAL),
)
"""What goes wrong, and which condition becomes False for which reason. The first five make a cluster unusable; the
others hide APIs that are known from before and are kept."""


def test_five_clusters_fail_and_the_twenty_others_do_not_notice(fleet: Fleet, crowd: list[str]) -> None:
    broken = dict(zip(crowd, FAULTS, strict=False))
    usable = crowd[5:]
    known = {name: len(fleet.cluster(name)["status"]["apiEnablements"]) for name in broken}
    since = {name: condition(fleet.cluster(name))["lastTransitionTime"] for name in usable}
    for name, (fault, _) in broken.items():
        fleet.sims.ctl("fail", name, *fault.split())
    for name, (fault, (kind, reason, message)) in broken.items():
        found = fleet.until_condition(name, reason, kind)
        assert (found["status"], found["message"]) == ("False", message.format(known=known[name])), fault
        wanted = [NOT_READY] if kind == "Ready" else []
        cluster = fleet.until(name, lambda cluster, wanted=wanted: taints(cluster) == wanted)
        if kind != "Ready":  # a pass that was under way when the others failed reports that it could not read it
            assert cluster["status"]["kubernetesVersion"], fault
        assert node_count(cluster) == 1, fault
    for name in (usable[2], usable[-1]):
        fleet.sims.ctl("scale", name, "--nodes=4")
        fleet.until(name, lambda cluster: node_count(cluster) == 4)
    for name in usable:
        ready = condition(fleet.cluster(name))
        assert (ready["status"], ready["lastTransitionTime"]) == ("True", since[name]), name
    for name in broken:
        fleet.sims.ctl("heal", name)
    for name in broken:
        fleet.until_ready(name)
        fleet.until_condition(name, "Complete", "CompleteAPIEnablements")
        fleet.until(name, lambda cluster: taints(cluster) == [])


def test_an_answer_without_ok_and_secrets_of_no_use_are_reported(fleet: Fleet, crowd: list[str]) -> None:
    unsure, tokenless, untrusting, bare = crowd[7:11]
    secrets = {name: fleet.get(SECRETS, name, "karmada-cluster")["data"] for name in (tokenless, untrusting, bare)}
    fleet.sims.ctl("fail", unsure, "unhealthy", "--code=203")
    change_secret(fleet, tokenless, {"data": {"token": None}})
    change_secret(fleet, untrusting, {"data": {"caBundle": None}})
    fleet.kubectl("-n", "karmada-cluster", "delete", "secret", bare)
    without = "failed to create a ClusterClient: the secret for cluster"
    for name, reason, message in (
        (unsure, "ClusterNotReady", "cluster is reachable but health endpoint responded without ok"),
        (tokenless, "StatusCollectionFailed", f'{without} {tokenless} is missing a non-empty value for "token"'),
        (untrusting, "StatusCollectionFailed", f'{without} {untrusting} is missing the CA data key "caBundle"'),
        (bare, "StatusCollectionFailed", f'failed to create a ClusterClient: secrets "{bare}" not found'),
    ):
        found = fleet.until_condition(name, reason)
        assert (found["status"], found["message"]) == ("False", message)
        fleet.until(name, lambda cluster: taints(cluster) == [NOT_READY])
    fleet.sims.ctl("heal", unsure)
    for name in (tokenless, untrusting):
        change_secret(fleet, name, {"data": secrets[name]})
    again = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": bare}, "data": secrets[bare]}
    fleet.kubectl("-n", "karmada-cluster", "create", "-f", "-", stdin=json.dumps(again))
    fleet.until_ready(unsure, tokenless, untrusting, bare)


def test_a_kind_that_a_member_does_not_serve_is_not_among_its_apis(fleet: Fleet, crowd: list[str]) -> None:
    def served(cluster: Obj, group_version: str) -> set[str]:
        found = (e["resources"] for e in cluster["status"]["apiEnablements"] if e["groupVersion"] == group_version)
        return {resource["kind"] for resources in found for resource in resources}

    name = crowd[13]
    assert "Deployment" in served(fleet.cluster(name), "apps/v1")
    fleet.sims.ctl("fail", name, "kind", "apps/v1", "cronjobs.batch")
    cluster = fleet.until(name, lambda c: not served(c, "apps/v1") and "CronJob" not in served(c, "batch/v1"))
    assert "Job" in served(cluster, "batch/v1")
    assert condition(cluster, "CompleteAPIEnablements")["reason"] == "Complete"
    assert condition(cluster)["reason"] == "ClusterReady"
    fleet.sims.ctl("heal", name)
    fleet.until(name, lambda c: "Deployment" in served(c, "apps/v1"))


def test_an_api_whose_own_server_is_dead_makes_the_list_partial(fleet: Fleet, crowd: list[str]) -> None:
    name = crowd[14]
    service = {"name": "nowhere", "namespace": "default", "port": 443}
    spec = {"group": "a.example", "version": "v1", "service": service, "insecureSkipTLSVerify": True}
    spec |= {"groupPriorityMinimum": 100, "versionPriority": 100}
    dead = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.a.example"}}
    fleet.sims.kubectl(name)("apply", "-f", "-", stdin=json.dumps(dead | {"spec": spec}))
    fleet.until_condition(name, "Partial", "CompleteAPIEnablements")
    cluster = fleet.cluster(name)
    assert condition(cluster)["reason"] == "ClusterReady"
    assert len(cluster["status"]["apiEnablements"]) > 10
    fleet.sims.kubectl(name)("delete", "apiservice", "v1.a.example")
    fleet.until_condition(name, "Complete", "CompleteAPIEnablements")


def test_a_rotated_token_is_used_at_once_and_a_wrong_one_is_noticed(fleet: Fleet, crowd: list[str]) -> None:
    name = crowd[17]
    member = fleet.sims.kubectl(name, "karmada-cluster")
    fresh = member("create", "token", f"karmada-{name}", "--duration=1h").out.strip()
    change_secret(fleet, name, {"stringData": {"token": fresh}})
    member("delete", "secret", f"karmada-{name}")  # ends the old token
    fleet.sims.ctl("scale", name, "--nodes=5")
    cluster = fleet.until(name, lambda cluster: node_count(cluster) == 5)
    assert condition(cluster)["status"] == "True"
    change_secret(fleet, name, {"stringData": {"token": "nobody's"}})
    fleet.until_condition(name, "ClusterNotReachable")
    change_secret(fleet, name, {"stringData": {"token": fresh}})
    fleet.sims.ctl("scale", name, "--nodes=2")
    fleet.until(name, lambda cluster: node_count(cluster) == 2)
    fleet.until_ready(name)


def test_who_is_granted_the_proxy_goes_through_as_themselves(fleet: Fleet, crowd: list[str]) -> None:
    name = crowd[16]
    member = fleet.sims.kubectl(name)
    nodes = ("get", "--raw", proxied(name, "/api/v1/nodes"))
    found = eventually_blocking(lambda: fleet.kubectl(*nodes, check=False).out)
    assert len(json.loads(found)["items"]) == 1
    jane = ("--as=jane", "get", "--raw", proxied(name, "/api/v1/namespaces/default/configmaps"))
    refused = fleet.kubectl(*jane, check=False)
    assert 'cannot get resource "clusters/proxy"' in refused.err
    role = f"through-to-{name}"
    granted = ("--verb=get", "--resource=clusters.cluster.karmada.io/proxy", f"--resource-name={name}")
    fleet.kubectl("create", "clusterrole", role, *granted)
    fleet.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=jane")
    member("create", "clusterrolebinding", "jane-views", "--clusterrole=view", "--user=jane")
    eventually_blocking(lambda: '"kind":"ConfigMapList"' in fleet.kubectl(*jane, check=False).out)
    other = fleet.kubectl("--as=jane", "get", "--raw", proxied(name, "/api/v1/nodes"), check=False)
    assert 'User "jane" cannot list resource "nodes"' in other.err
    fleet.kubectl("delete", "clusterrole,clusterrolebinding", role)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_clusters_are_still_there_after_a_restart(fleet: Fleet, crowd: list[str], how: str) -> None:
    name = crowd[15]
    before = fleet.cluster(name)
    nodes = node_count(before) + 1
    getattr(fleet.plane, how)()
    fleet.sims.ctl("scale", name, f"--nodes={nodes}")
    fleet.plane.start()
    after = fleet.until(name, lambda cluster: node_count(cluster) == nodes)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"]
    assert condition(after) == condition(before)

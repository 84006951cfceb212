"""kubectl with a kubeconfig that points at all clusters: by the all-in-one, and by karmada-search behind it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from karmada.api.search import ResourceRegistry
from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.search.proxy.versions import Versions
from karmada.search.reading import REFUSED
from tests.e2e.aggregated_process import AggregatedProcess
from tests.e2e.pasting import blocks, paste_with
from tests.e2e.places import Place
from tests.e2e.propagating import SECRETS, Propagation, as_text
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object
from tests.support.programs import Program, Result

pytestmark = pytest.mark.e2e

SPACE, OTHER, THIRD = "everywhere", "everywhere-2", "everywhere-3"
EACH = 40
VERSION = "v1alpha1.search.karmada.io"
ROOT = Path(__file__).parents[2]
PROXY = "/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
"""For `kubectl get --raw` of the control plane: only later kubectls put the path of a server before it."""


def pod(name: str, **labels: str) -> Obj:
    return kube_object("v1", "Pod", name, labels=labels) | {
        "spec": {"containers": [{"name": "main", "image": "nginx"}], "terminationGracePeriodSeconds": 0}
    }


def registry(name: str, *selectors: tuple[str, str], clusters: tuple[str, ...] = ()) -> Obj:
    named = [{"apiVersion": "v1", "kind": kind, "namespace": namespace} for kind, namespace in selectors]
    return kube_object(ResourceRegistry.gvk.api_version, "ResourceRegistry", name) | {
        "spec": {"targetCluster": {"clusterNames": list(clusters)}, "resourceSelectors": named}
    }


def secret(name: str) -> Obj:
    return kube_object("v1", "Secret", name, stringData={"a": "b"})


REGISTRIES = [
    registry("everywhere", ("Pod", ""), ("Node", "")),
    registry("secrets-2", ("Secret", OTHER)),
    registry("secrets-3", ("Secret", THIRD)),
]


def fill(fleet: Propagation) -> None:
    """Pods and Secrets in members, put there directly."""

    async def member(place: Place, objects: list[tuple[GVR, str, Obj]]) -> None:
        for space in (SPACE, OTHER, THIRD):
            await place.client.create(NAMESPACES, {"metadata": {"name": space}})
        await asyncio.gather(*(place.client.create(kind, obj, space) for kind, space, obj in objects))

    waiting = []
    for name, place in fleet.members.items():
        objects = [(PODS, OTHER, pod(f"{name}-{number:02d}", stable="yes")) for number in range(EACH)]
        objects.append((PODS, SPACE, pod(f"in-{name}")))
        objects += [(SECRETS, space, secret(f"of-{name}")) for space in (SPACE, OTHER, THIRD)]
        if name != "member3":
            objects.append((SECRETS, OTHER, secret("twice")))
        waiting.append(place.start(member(place, objects)))
    for each in waiting:
        each.result(60)


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    fill(three_members)
    yield three_members
    for place in three_members.members.values():
        for space in (SPACE, OTHER, THIRD):
            place.delete(NAMESPACES, space)


@pytest.fixture(scope="module")
def kubectl(fleet: Propagation, kubectl_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """With the kubeconfig that the page has the reader make."""
    folder = tmp_path_factory.mktemp("all-clusters")
    making = next(block for block in blocks(ROOT / "docs/search.md", "sh") if "all-clusters.config" in block)
    paste_with(making, fleet.kubectl.env, folder)
    everywhere = Program([kubectl_path], fleet.kubectl.home, folder / "all-clusters.config")
    fleet.apply(*REGISTRIES)
    until_cached(fleet.kubectl)
    yield everywhere
    fleet.delete(*REGISTRIES)


def names(kubectl: Program, kind: str, *flags: str) -> list[str]:
    shown = kubectl("get", kind, *flags, "-o", "custom-columns=N:.metadata.name", "--no-headers")
    return shown.lines


def until_cached(kubectl: Program) -> None:
    """The page of objects from the caches has all of them."""

    def complete() -> bool:
        raw = kubectl("get", "--raw", f"{PROXY}/api/v1/namespaces/{SPACE}/pods?resourceVersion=0")
        assert len(json.loads(raw.out)["items"]) == 3, raw.out
        return True

    eventually_blocking(complete)


def until_running(fleet: Propagation, name: str) -> None:
    member = fleet.members[name.removeprefix("in-")]
    member.until(PODS, name, lambda found: found["status"]["phase"] == "Running", namespace=SPACE)


# --- reading


def test_pods_of_all_clusters_are_shown_with_the_columns_of_pods(fleet: Propagation, kubectl: Program) -> None:
    for member in fleet.members:
        until_running(fleet, f"in-{member}")
    header, *rows = kubectl("get", "pods", "-n", SPACE).lines
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row.split()[:3] for row in rows] == [[f"in-{member}", "1/1", "Running"] for member in sorted(fleet.members)]
    found = kubectl("get", "pod", "in-member2", "-n", SPACE, "-o", "json").json()
    assert found["metadata"]["annotations"][CACHED_FROM_CLUSTER] == "member2"
    assert "kind: Pod" in kubectl("get", "pod", "in-member2", "-n", SPACE, "-o", "yaml").out


def test_chunks_are_complete_and_without_doubles_while_pods_change(fleet: Propagation, kubectl: Program) -> None:
    stop = False

    async def churn(place: Place, member: str) -> None:
        number = 0
        while not stop:
            name, number = f"churn-{member}-{number}", number + 1
            await place.client.create(PODS, pod(name), OTHER)
            with suppress(ApiError):
                await place.client.delete(PODS, name, OTHER)

    running = [place.start(churn(place, name)) for name, place in fleet.members.items()]
    try:
        wanted = [f"{member}-{number:02d}" for member in sorted(fleet.members) for number in range(EACH)]
        for size in (50, 7):
            shown = names(kubectl, "pods", "-A", f"--chunk-size={size}")
            assert [name for name in shown if not name.startswith("churn-") and name[:7] in fleet.members] == wanted
            assert len(shown) == len(set(shown))
        assert names(kubectl, "pods", "-n", OTHER, "-l", "stable=yes", "--chunk-size=33") == wanted
    finally:
        stop = True
        for each in running:
            each.result(30)


@contextmanager
def watching(kubectl: Program, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A kubectl that is killed at the end of the block, or when that takes too long."""
    process = kubectl.start("get", *arguments, stderr=subprocess.STDOUT)
    limit = threading.Timer(30, process.kill)
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.communicate()


def until_line(process: subprocess.Popen[str], *words: str) -> None:
    """The next line that begins so."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if tuple(line.split()[: len(words)]) == words:
            return
    raise AssertionError(f"{words} is not in {seen}")


def test_a_watch_has_the_changes_of_all_clusters(fleet: Propagation, kubectl: Program) -> None:
    flags = ("-n", SPACE, "-l", "watched=yes", "-w", "--output-watch-events", "--no-headers")
    with watching(kubectl, "pods", *flags) as watch:
        for member in ("member3", "member1"):
            fleet.members[member].create(PODS, pod(f"new-{member}", watched="yes"), SPACE)
            until_line(watch, "ADDED", f"new-{member}")
            fleet.members[member].delete(PODS, f"new-{member}", SPACE)
            until_line(watch, "DELETED", f"new-{member}")


def test_nodes_are_paged_over_clusters(fleet: Propagation, kubectl: Program) -> None:
    wanted = sum(len(place.list(NODES)) for place in fleet.members.values())

    def page(query: str) -> Any:
        return json.loads(fleet.kubectl("get", "--raw", f"{PROXY}/api/v1/nodes?{query}").out)

    whole = page("")
    assert {item["metadata"]["annotations"][CACHED_FROM_CLUSTER] for item in whole["items"]} == set(fleet.members)
    assert len(whole["items"]) == wanted
    first = page("limit=1")
    assert len(first["items"]) == 1
    rest = page(f"limit=100000&continue={first['metadata']['continue']}")
    assert len(rest["items"]) == wanted - 1
    assert "continue" not in rest["metadata"]
    name = first["items"][0]["metadata"]["name"]
    same = sum(node["metadata"]["name"] == name for node in whole["items"])
    for query in (f"fieldSelector=metadata.name={name}", f"resourceVersion=0&fieldSelector=metadata.name={name}"):
        assert [item["metadata"]["name"] for item in page(query)["items"]] == [name] * same, query


def test_only_the_namespaces_of_registries_are_there(fleet: Propagation, kubectl: Program) -> None:
    found = names(kubectl, "secrets", "-A", "--field-selector", "type=Opaque")
    assert sorted(found) == sorted(["twice"] * 2 + [f"of-{member}" for member in fleet.members] * 2)
    assert names(kubectl, "secrets", "-n", SPACE) == []
    assert kubectl("get", "secret", "of-member1", "-n", SPACE, check=False).err.count("not found") == 1


# --- in the right member


def test_logs_and_commands_reach_the_member_of_the_pod(fleet: Propagation, kubectl: Program) -> None:
    for member in ("member1", "member2"):
        until_running(fleet, f"in-{member}")
        assert f"in-{member}/main line 1" in kubectl("logs", "-n", SPACE, f"in-{member}").out
        assert kubectl("exec", "-n", SPACE, f"in-{member}", "--", "echo", "there").out == "there\n"


def test_what_is_deleted_is_deleted_in_its_member(fleet: Propagation, kubectl: Program) -> None:
    member = fleet.members["member2"]
    member.create(PODS, pod("short-lived"), SPACE)
    eventually_blocking(lambda: kubectl("get", "pod", "short-lived", "-n", SPACE, check=False).code == 0)
    kubectl("delete", "pod", "short-lived", "-n", SPACE, "--wait=false")
    member.until_gone(PODS, "short-lived", namespace=SPACE)
    assert len(names(kubectl, "pods", "-n", SPACE, "--field-selector", "metadata.name=in-member2")) == 1


def test_an_update_reaches_the_member_under_its_own_version(fleet: Propagation, kubectl: Program) -> None:
    member = fleet.members["member1"]
    name = member.list(NODES)[0]["metadata"]["name"]
    shared = [place for place in fleet.members.values() if place.get(NODES, name, "") is not None]
    if len(shared) > 1:
        name = f"only-{name}"
        member.create(NODES, {"metadata": {"name": name}})
        eventually_blocking(lambda: kubectl("get", "node", name, check=False).code == 0)
    read = kubectl("get", "node", name, "-o", "json").json()
    read["metadata"]["labels"]["from"] = "everywhere"
    kubectl("replace", "-f", "-", stdin=json.dumps(read))
    stored = member.get(NODES, name, "")
    assert stored is not None
    assert stored["metadata"]["labels"]["from"] == "everywhere"
    assert CACHED_FROM_CLUSTER not in (stored["metadata"].get("annotations") or {})
    read["metadata"]["labels"]["from"] = "too late"
    stale = kubectl("replace", "-f", "-", stdin=json.dumps(read), check=False)
    assert "the object has been modified" in stale.err
    if name.startswith("only-"):
        kubectl("delete", "node", name)


def test_a_name_in_two_clusters_is_ambiguous(kubectl: Program) -> None:
    assert names(kubectl, "secrets", "-n", OTHER, "--field-selector", "metadata.name=twice") == ["twice"] * 2
    for verb in ("get", "delete"):
        refused = kubectl(verb, "secret", "twice", "-n", OTHER, check=False)
        assert "ambiguous objects in clusters [member1, member2]" in refused.err
        assert "Conflict" in refused.err


def test_new_objects_have_no_cluster_and_those_of_other_kinds_are_templates(
    fleet: Propagation, kubectl: Program
) -> None:
    refused = kubectl("create", "-n", "default", "-f", "-", stdin=as_text(pod("nowhere")), check=False)
    assert 'create is not supported on resources of kind "pods"' in refused.err
    kubectl("create", "configmap", "template", "-n", "default", "--from-literal=a=b")
    assert fleet.kubectl("get", "configmap", "template", "-o", "jsonpath={.data.a}").out == "b"
    kubectl("delete", "configmap", "template", "-n", "default")


def test_a_cluster_that_comes_to_a_registry_is_listed(fleet: Propagation, kubectl: Program) -> None:
    two = registry("limits", ("LimitRange", ""), clusters=("member1", "member2"))
    fleet.apply(two)
    try:
        limits = f"{PROXY}/api/v1/limitranges"
        until_positions(fleet.kubectl, limits, {"member1", "member2"})
        fleet.apply(registry("limits", ("LimitRange", ""), clusters=("member1", "member2", "member3")))
        until_positions(fleet.kubectl, limits, {"member1", "member2", "member3"})
    finally:
        fleet.delete(two)


def until_positions(kubectl: Program, path: str, clusters: set[str]) -> None:
    def there() -> bool:
        listed = json.loads(kubectl("get", "--raw", path).out)
        found = set(Versions.decode(listed["metadata"]["resourceVersion"]))
        assert found == clusters, listed
        return True

    eventually_blocking(there)


def test_callers_see_and_do_what_each_member_lets_them(fleet: Propagation, kubectl: Program, tmp_path: Path) -> None:
    granting = next(
        block for block in blocks(ROOT / "docs/search.md", "sh") if "create clusterrole all-clusters" in block
    )
    paste_with(granting, fleet.kubectl.env, tmp_path)
    here = fleet.sims.kubectl("member1")
    here("create", "clusterrolebinding", "jane-views", "--clusterrole=view", "--user=jane")

    def jane(*arguments: str, check: bool = False) -> Result:
        return kubectl(*arguments, "-n", SPACE, "--as", "jane", check=check)

    try:
        shown = jane("get", "pods", "--no-headers", check=True)
        assert [row.split()[0] for row in shown.lines] == ["in-member1"]
        assert f"Warning: clusters left out: member2 ({REFUSED}), member3 ({REFUSED})" in shown.err
        assert 'pods "in-member2" not found' in jane("get", "pod", "in-member2").err
        assert REFUSED in jane("get", "nodes").err
        eventually_blocking(lambda: jane("logs", "in-member1").code == 0)  # once the member lets her be impersonated
        for member in ("member1", "member2"):
            refused = jane("delete", "pod", f"in-{member}", "--wait=false").err
            assert 'User "jane" cannot delete resource "pods"' in refused, refused
        assert 'User "jane" cannot list resource "configmaps"' in jane("get", "configmaps").err
    finally:
        here("delete", "clusterrolebinding", "jane-views")
        fleet.kubectl("delete", "clusterrole,clusterrolebinding", "all-clusters")


# --- another process


@pytest.fixture
def behind(fleet: Propagation, kubectl: Program, tmp_path: Path) -> Iterator[Callable[[], AggregatedProcess]]:
    process = AggregatedProcess(
        tmp_path, fleet.plane.kubeconfig, name="karmada-search", service="search-behind", verified=False,
        versions=(VERSION,), arguments=["--storage", "memory://"],
    )  # fmt: skip
    process.start()
    service = fleet.kubectl("get", "apiservice", VERSION, "-o", "json", check=False)
    try:
        process.register(fleet.kubectl)
        fleet.apply(*REGISTRIES)
        until_cached(fleet.kubectl)
        yield lambda: process
    finally:
        fleet.kubectl("delete", "apiservice", VERSION)
        if service.code == 0:
            before = service.json()
            del before["metadata"]["resourceVersion"], before["metadata"]["uid"]
            fleet.kubectl("apply", "-f", "-", stdin=json.dumps(before))
        assert process.stop() == 0, process.log()
        assert "Traceback" not in process.log()


def test_a_process_of_its_own_serves_the_same(
    fleet: Propagation, kubectl: Program, behind: Callable[[], AggregatedProcess]
) -> None:
    assert behind().port
    for member in fleet.members:
        until_running(fleet, f"in-{member}")
    rows = kubectl("get", "pods", "-n", SPACE, "--no-headers").lines
    assert [row.split()[:3] for row in rows] == [[f"in-{member}", "1/1", "Running"] for member in sorted(fleet.members)]
    assert "in-member3/main line 1" in kubectl("logs", "-n", SPACE, "in-member3").out
    assert kubectl("exec", "-n", SPACE, "in-member2", "--", "echo", "there").out == "there\n"
    kubectl("create", "configmap", "by-search", "-n", "default")
    assert fleet.kubectl("get", "configmap", "by-search").code == 0
    kubectl("delete", "configmap", "by-search", "-n", "default")
    jane = kubectl("get", "configmaps", "-n", "default", "--as", "jane", check=False)
    assert 'User "jane" cannot get resource "proxying/proxy"' in jane.err

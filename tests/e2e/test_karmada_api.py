"""Karmada's API through kubectl: every kind as people see it, and member clusters behind the proxy."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import yaml

from karmada.api.crds import all_kinds
from karmada.api.kind import KindInfo
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.eventually import LIMIT
from tests.support.fake_member import FakeProxy, connect_proxy, socks_proxy
from tests.support.kubectl_plane import PROXIES, PROXY, Plane, plane, stop
from tests.support.programs import Program, Result, columns
from tests.support.rights import binding, role, user

pytestmark = pytest.mark.e2e
Way = Callable[[], AbstractAsyncContextManager[FakeProxy]]
DATA = Path(__file__).parent.parent / "api" / "data"
KINDS = [info for info in all_kinds() if info.storage]
TWICE = {"ReplicaSchedulingPolicy"}
"""In two groups."""


def spelled(info: KindInfo) -> str:
    return f"{info.plural}.{info.gvk.group}" if info.gvk.kind in TWICE else info.plural


@pytest.fixture(scope="module")
def karmada(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Plane]:
    with Background() as background:
        made = plane(background, tmp_path_factory.mktemp("karmada"), kubectl_path)
        made.join("member1")
        made.join("member2")
        yield made


@pytest.fixture(scope="module")
def kubectl(karmada: Plane) -> Program:
    """To the control plane."""
    return karmada.kubectl()


@pytest.fixture(scope="module")
def member(karmada: Plane) -> Program:
    """To member1, through the control plane."""
    return karmada.kubectl(member="member1")


@pytest.fixture(scope="module")
def everywhere(karmada: Plane) -> Program:
    """To all members at once."""
    return karmada.kubectl(member="*")


# --- the kinds


SHOWN = {
    "PropagationPolicy": ["NAME", "CONFLICT-RESOLUTION", "PRIORITY", "AGE"],
    "ClusterPropagationPolicy": ["NAME", "CONFLICT-RESOLUTION", "PRIORITY", "AGE"],
    "FederatedResourceQuota": ["NAME", "OVERALL", "OVERALL_USED"],
    "ResourceBinding": ["NAME", "SCHEDULED", "FULLYAPPLIED", "AGE"],
    "ClusterResourceBinding": ["NAME", "SCHEDULED", "FULLYAPPLIED", "AGE"],
    "Work": ["NAME", "WORKLOAD-KIND", "APPLIED", "AGE"],
    "ResourceInterpreterCustomization": ["NAME", "TARGET-API-VERSION", "TARGET-KIND", "AGE"],
    "FederatedHPA": ["NAME", "REFERENCE-KIND", "REFERENCE-NAME", "MINPODS", "MAXPODS", "REPLICAS", "AGE"],
    "CronFederatedHPA": ["NAME", "REFERENCE-KIND", "REFERENCE-NAME", "AGE"],
    "ServiceExport": ["NAME", "AGE"],
    "ServiceImport": ["NAME", "TYPE", "IP", "AGE"],
    "ResourceRegistry": ["NAME", "CREATED AT"],
    "Cluster": ["NAME", "VERSION", "MODE", "READY", "AGE"],
}


@pytest.mark.parametrize("info", KINDS, ids=spelled)
def test_a_kind_is_explained_and_shown_in_columns(kubectl: Program, info: KindInfo) -> None:
    output = kubectl("explain", info.plural, f"--api-version={info.gvk.api_version}").out
    assert f"KIND:       {info.gvk.kind}" in output
    described = (info.type.__doc__ or "").split("\n")[0].split(". ")[0]
    assert described[:40] in output
    file = DATA / "kinds" / f"{info.gvk.kind}.yaml"
    if not file.exists():
        file = DATA / "kinds" / f"{info.gvk.kind}-{info.gvk.group.split('.')[0]}.yaml"
    manifest = yaml.safe_dump(next(yaml.safe_load_all(file.read_text())))
    kubectl("create", "-f", "-", stdin=manifest)
    for name in (spelled(info), *info.short):
        shown = kubectl("get", name, "minimal")
        assert columns(shown) == SHOWN.get(info.gvk.kind, ["NAME", "AGE"])
        assert shown.lines[1].split()[0] == "minimal"


def test_api_resources_lists_names_short_names_scope_and_categories(kubectl: Program) -> None:
    listed = {line.split()[0]: line for line in kubectl("api-resources", "--api-group=policy.karmada.io").lines[1:]}
    assert re.split(r"\s{2,}", listed["propagationpolicies"]) == [
        "propagationpolicies", "pp", "policy.karmada.io/v1alpha1", "true", "PropagationPolicy",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", listed["clusterpropagationpolicies"])[3] == "false"
    wide = kubectl("api-resources", "--api-group=cluster.karmada.io", "-o", "wide").lines[1]
    assert re.split(r"\s{2,}", wide)[:4] == ["clusters", "cluster.karmada.io/v1alpha1", "false", "Cluster"]
    found = set(kubectl("api-resources", "--categories=karmada-io", "-o", "name").lines)
    assert {"propagationpolicies.policy.karmada.io", "works.work.karmada.io"} <= found
    assert "clusters.cluster.karmada.io" not in found


def test_clusters_are_served_natively(kubectl: Program) -> None:
    assert kubectl("get", "crd", "clusters.cluster.karmada.io", check=False).code == 1
    shown = kubectl("get", "apiservice", "v1alpha1.cluster.karmada.io").lines[1].split()
    assert shown[:3] == ["v1alpha1.cluster.karmada.io", "Local", "True"]
    kubectl("patch", "cluster", "member2", "-p", '{"spec":{"provider":"metal"}}')
    assert kubectl("get", "cluster", "member2", "-o", "jsonpath={.spec.provider}").out == "metal"


def test_wide_output_shows_where_clusters_are(kubectl: Program) -> None:
    wide = kubectl("get", "clusters", "-o", "wide")
    assert columns(wide) == [
        "NAME", "VERSION", "MODE", "READY", "AGE", "ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "PROXY-URL",
    ]  # fmt: skip
    row = next(re.split(r"\s{2,}", line) for line in wide.lines if line.startswith("member1"))
    assert row[1:3] == ["Push", "Unknown"]
    assert row[4:7] == ["<none>", "<none>", "<none>"]
    assert row[7].startswith("https://127.0.0.1:")


@pytest.mark.parametrize("file", sorted((DATA / "seeds").glob("*.yaml")), ids=lambda file: file.stem)
def test_manifests_of_others_are_accepted(kubectl: Program, file: Path) -> None:
    """Objects of one name in a file are versions of one thing, applied one after another."""
    manifests = list(yaml.safe_load_all(file.read_text()))
    for namespace in {obj["metadata"].get("namespace", "default") for obj in manifests} - {"default"}:
        kubectl("create", "namespace", namespace)
    applied = kubectl("apply", "-f", str(file))
    assert len(applied.lines) == len(manifests)
    assert all(re.search(r" (created|configured|unchanged)$", line) for line in applied.lines)


# --- one member, through the proxy


POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - {name: main, image: nginx:1.27, ports: [{containerPort: 80}]}
"""


@pytest.fixture(scope="module")
def pod(member: Program) -> str:
    member("apply", "-f", "-", stdin=POD)
    member("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")
    return "web"


def test_get_apply_and_delete_in_a_member(member: Program, kubectl: Program) -> None:
    assert member("get", "nodes", "-o", "name").lines
    assert "server-side applied" not in member("create", "configmap", "settings", "--from-literal=colour=blue").out
    member("label", "configmap", "settings", "tier=front")
    manifest = member("get", "configmap", "settings", "-o", "yaml").out.replace("blue", "green")
    assert member("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest).lines == [
        "configmap/settings serverside-applied"
    ]
    assert member("get", "cm", "settings", "-o", "jsonpath={.data.colour}").out == "green"
    assert kubectl("get", "cm", "settings", check=False).code == 1, "it is the member's, not ours"
    member("delete", "configmap", "settings")
    assert 'configmaps "settings" not found' in member("get", "cm", "settings", check=False).err


def raw(kubectl: Program, cluster: str, path: str, *arguments: str) -> Result:
    """kubectl takes the path as it is, without the server's own."""
    return kubectl("get", "--raw", f"{PROXIES.format(cluster)}{path}", *arguments, check=False, timeout=LIMIT)


def test_get_raw_by_the_whole_path(kubectl: Program) -> None:
    assert raw(kubectl, "member1", "/api/v1/nodes?limit=1").json()["kind"] == "NodeList"
    assert raw(kubectl, "member1", "/readyz").out == "ok"


def test_a_watch_in_a_member(member: Program) -> None:
    member("create", "configmap", "watched", "--from-literal=colour=red")
    watch = member.start("get", "cm", "watched", "-w", "-o", "jsonpath={.data.colour}{'\\n'}")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().strip() == "red"
        member("patch", "cm", "watched", "--type=merge", "-p", '{"data":{"colour":"amber"}}')
        assert watch.stdout.readline().strip() == "amber"
    finally:
        stop(watch)


def test_logs_are_followed(member: Program, pod: str) -> None:
    follow = member.start("logs", "-f", pod)
    assert follow.stdout is not None
    try:
        assert follow.stdout.readline().strip()
    finally:
        stop(follow)
    assert member("logs", pod, "--tail=1").lines


TRANSPORTS = pytest.mark.parametrize("sockets", ["true", "false"], ids=["WebSocket", "SPDY"])


def over(program: Program, sockets: str) -> Program:
    program.env |= {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": sockets, "KUBECTL_PORT_FORWARD_WEBSOCKETS": sockets}
    return program


@TRANSPORTS
def test_exec_in_a_member(karmada: Plane, pod: str, sockets: str) -> None:
    kubectl = over(karmada.kubectl(member="member1"), sockets)
    assert kubectl("exec", pod, "--", "hostname").out.strip() == pod
    assert kubectl("exec", "-i", pod, "--", "cat", stdin="hello\n" * 1000).out == "hello\n" * 1000
    failed = kubectl("exec", pod, "--", "sh", "-c", "exit 3", check=False)
    assert (failed.code, "exit code 3" in failed.err) == (3, True)


@TRANSPORTS
def test_attach_in_a_member(karmada: Plane, pod: str, sockets: str) -> None:
    kubectl = over(karmada.kubectl(member="member1"), sockets)
    attached = kubectl.start("attach", pod)
    assert attached.stdout is not None
    assert attached.stderr is not None
    try:
        assert attached.poll() is None
        line = attached.stdout.readline()
        assert line.strip(), attached.stderr.read()
    finally:
        stop(attached)


@TRANSPORTS
def test_port_forward_in_a_member(karmada: Plane, pod: str, sockets: str) -> None:
    kubectl = over(karmada.kubectl(member="member1"), sockets)
    forward = kubectl.start("port-forward", f"pod/{pod}", ":80")
    assert forward.stdout is not None
    try:
        port = re.search(r"127.0.0.1:(\d+)", forward.stdout.readline())
        assert port
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/", timeout=LIMIT) as answer:
                assert answer.status == 200
                assert answer.read()
    finally:
        stop(forward)


@TRANSPORTS
@pytest.mark.parametrize("way", [connect_proxy, socks_proxy], ids=["CONNECT", "SOCKS5"])
def test_a_member_behind_a_proxy(karmada: Plane, kubectl: Program, pod: str, way: Way, sockets: str) -> None:
    proxy = karmada.background.enter(way())
    through = over(karmada.kubectl(member="member1"), sockets)
    kubectl("patch", "cluster", "member1", "--type=merge", "-p", json.dumps({"spec": {"proxyURL": proxy.url}}))
    try:
        assert through("get", "pod", pod, "-o", "name").lines == [f"pod/{pod}"]
        assert proxy.heads
        assert through("exec", pod, "--", "hostname").out.strip() == pod
    finally:
        kubectl("patch", "cluster", "member1", "--type=merge", "-p", '{"spec":{"proxyURL":null}}')


def test_a_pod_is_reached_through_both_proxies(kubectl: Program, pod: str) -> None:
    assert raw(kubectl, "member1", f"/api/v1/namespaces/default/pods/{pod}:80/proxy/").out == "ok from web"


# --- who may


def test_without_the_right_to_the_proxy_nobody_gets_through(karmada: Plane) -> None:
    refused = karmada.kubectl("stranger", member="member1")("get", "nodes", check=False)
    assert refused.code == 1
    assert refused.err.strip().splitlines()[-1] == (
        'Error from server (Forbidden): clusters.cluster.karmada.io "member1" is forbidden: User "stranger" cannot get '
        'resource "clusters/proxy" in API group "cluster.karmada.io" at the cluster scope'
    )


def test_in_the_member_the_callers_own_rights_count(karmada: Plane, member: Program) -> None:
    karmada.create(CLUSTER_ROLES, role("into-member1", {**PROXY, "resourceNames": ["member1"]}))
    karmada.create(CLUSTER_ROLE_BINDINGS, binding("into-member1", user("jane")))
    jane = karmada.kubectl("jane", "crew", member="member1")
    refused = jane("get", "nodes", check=False)
    assert refused.err.strip().splitlines()[-1] == (
        'Error from server (Forbidden): nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" '
        "at the cluster scope"
    )
    who = jane("auth", "whoami", "-o", "json").json()["status"]["userInfo"]
    assert who["username"] == "jane"
    assert set(who["groups"]) == {"crew", "system:authenticated"}
    member("create", "clusterrolebinding", "crew", "--clusterrole=view", "--group=crew")
    assert jane("get", "pods", "-A", check=False).code == 0
    assert "Forbidden" in karmada.kubectl("jane", "crew", member="member2")("get", "pods", check=False).err


# --- all members at once


def test_lists_of_all_members_become_one(karmada: Plane, everywhere: Program) -> None:
    for name in ("member1", "member2"):
        karmada.kubectl(member=name)("create", "configmap", f"only-{name}")
    found = everywhere("get", "configmaps", "-o", "name").lines
    assert {"configmap/only-member1", "configmap/only-member2"} <= set(found)
    assert everywhere("get", "cm", "-A", "--field-selector", "metadata.namespace=kube-system", "-o", "name").lines
    assert len(everywhere("get", "nodes", "-o", "name").lines) == 2


def test_a_named_object_is_found_in_the_one_member_that_has_it(everywhere: Program, member: Program, pod: str) -> None:
    assert everywhere("get", "pod", pod, "-o", "jsonpath={.metadata.name}").out == pod
    assert everywhere("exec", pod, "--", "hostname").out.strip() == pod
    assert everywhere("logs", pod, "--tail=1").lines
    everywhere("label", "pod", pod, "seen=yes")
    assert member("get", "pod", pod, "-o", "jsonpath={.metadata.labels.seen}").out == "yes"


@cases(
    ("/api/v1/namespaces/default/pods/nowhere", "(NotFound)"),
    ("/api/v1/namespaces/kube-system", "(Conflict)"),
    ("/api/v1/namespaces/default/configmaps?watch=true", "(MethodNotAllowed)"),
    ("/api/v1/nonsense", "(NotFound)"),
)
def test_what_all_members_together_cannot_answer(path: str, why: str, kubectl: Program) -> None:
    assert why in raw(kubectl, "*", path).err


def test_all_members_cannot_be_written_to(everywhere: Program) -> None:
    refused = everywhere("create", "configmap", "nope", check=False)
    assert "the server does not allow this method on the requested resource" in refused.err

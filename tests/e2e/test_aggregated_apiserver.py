"""Clusters from a server of their own, behind the API server of a control plane: real processes, real kubectl."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from karmada.joining.join import Joining, join
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from karmada.kube.sim.cluster import SimCluster
from tests.e2e.aggregated_process import AggregatedProcess
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.etcd_cluster import EtcdCluster
from tests.support.eventually import LIMIT, eventually_blocking
from tests.support.kubectl_plane import IMPERSONATION, PROXIES, simulated
from tests.support.objects import kube_object
from tests.support.programs import Program, ServerProcess
from tests.support.rights import binding, role

pytestmark = pytest.mark.e2e
PATH = "/apis/cluster.karmada.io/v1alpha1"
CLUSTER = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec: {syncMode: Pull, zone: eu-1}
"""


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    path.write_text('jane-token,jane,1,"crew"\njoe-token,joe,2\nserver-token,server,3\n')
    return path


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, tokens: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path_factory.mktemp("front") / "data", ["--token-auth-file", str(tokens)])
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def kubectl(front: ServerProcess, kubectl_path: str, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return Program([kubectl_path], tmp_path_factory.mktemp("home"), front.kubeconfig)


@pytest.fixture(scope="module")
def behind(
    front: ServerProcess, kubectl: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AggregatedProcess]:
    folder = tmp_path_factory.mktemp("behind")
    server = AggregatedProcess(folder, front.kubeconfig, ["--storage", f"sqlite://{folder}/clusters.db"])
    server.start()
    server.register(kubectl)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def member(
    front: ServerProcess, behind: AggregatedProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SimCluster]:
    """member1, joined through the control plane."""
    with Background() as background:
        sim = background.enter(simulated("member1", tmp_path_factory.mktemp("member1")))
        background.run(joined(front, sim))
        yield sim


async def joined(front: ServerProcess, sim: SimCluster) -> None:
    there = load_config(sim.kubeconfig)
    control, member = Client(HttpTransport(load_config(front.kubeconfig))), Client(HttpTransport(there))
    try:
        await join(control, member, Joining.to(there, "member1"))
        await member.create(CLUSTER_ROLES, role("karmada-impersonator", IMPERSONATION))
        account = {"kind": "ServiceAccount", "namespace": "karmada-cluster", "name": "karmada-impersonator"}
        await member.create(CLUSTER_ROLE_BINDINGS, binding("karmada-impersonator", account))
    finally:
        await control.close()
        await member.close()


def as_user(kubectl: Program, token: str, folder: Path) -> Program:
    config = yaml.safe_load(Path(kubectl.env["KUBECONFIG"]).read_text())
    config["users"][0]["user"] = {"token": token}
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return Program([*kubectl._command], folder, path)


@pytest.mark.usefixtures("behind")
def test_clusters_are_written_and_read_through_the_control_plane(kubectl: Program) -> None:
    kubectl("apply", "-f", "-", stdin=CLUSTER.replace("NAME", "edge"))
    shown = kubectl("get", "clusters", "edge", "-o", "wide").lines
    assert shown[0].split()[:6] == ["NAME", "VERSION", "MODE", "READY", "AGE", "ZONES"]
    assert shown[1].split()[:3] == ["edge", "Pull", "Unknown"]
    stored = kubectl("get", "cluster", "edge", "-o", "json").json()
    assert stored["spec"]["zones"] == ["eu-1"]
    assert len(stored["spec"]["resourceModels"]) == 9
    kubectl("label", "cluster", "edge", "tier=far")
    assert kubectl("get", "clusters", "-l", "tier=far", "-o", "name").lines == ["cluster.cluster.karmada.io/edge"]
    bad = kubectl("apply", "-f", "-", stdin=CLUSTER.replace("NAME", "a.b"), check=False)
    assert 'The Cluster "a.b" is invalid: metadata.name: Invalid value' in bad.err
    assert "KIND:       Cluster" in kubectl("explain", "clusters").out
    kubectl("delete", "cluster", "edge")


@pytest.mark.usefixtures("behind")
def test_clusters_are_watched_through_the_control_plane(kubectl: Program) -> None:
    watch = kubectl.start("get", "clusters", "-w", "-o", "name", "--output-watch-events=false")
    assert watch.stdout is not None
    try:
        eventually_blocking(
            lambda: kubectl("create", "-f", "-", stdin=CLUSTER.replace("NAME", "seen"), check=False).code == 0
        )
        names = iter(watch.stdout.readline, "")
        assert any("cluster.cluster.karmada.io/seen" in line for line in names)
    finally:
        watch.kill()
        watch.communicate()
        kubectl("delete", "cluster", "seen")


@pytest.mark.usefixtures("member")
def test_a_member_is_reached_through_both_servers(
    kubectl: Program, kubectl_path: str, front: ServerProcess, tmp_path: Path
) -> None:
    there = Program([kubectl_path, f"--server={front.url}{PROXIES.format('member1')}"], tmp_path, front.kubeconfig)
    assert len(there("get", "nodes", "-o", "name").lines) == 1
    pod = kube_object("v1", "Pod", "web", spec={"containers": [{"name": "main", "image": "nginx"}]})
    there("apply", "-f", "-", stdin=json.dumps(pod))
    there("wait", "--for=condition=Ready", "pod/web", "--timeout=100s")
    for sockets in ("true", "false"):
        there.env["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] = sockets
        assert there("exec", "web", "--", "hostname").out.strip() == "web"
    assert there("logs", "web", "--tail=1").lines
    listed = kubectl("get", "--raw", f"{PROXIES.format('*')}/api/v1/nodes").json()
    assert len(listed["items"]) == 1
    assert kubectl("get", "--raw", f"{PROXIES.format('*')}/version").json()["gitVersion"]


@pytest.mark.usefixtures("member")
def test_a_secret_that_is_replaced_counts(kubectl: Program) -> None:
    path = f"{PROXIES.format('member1')}/api/v1/nodes"
    secret = kubectl("-n", "karmada-cluster", "get", "secret", "member1-impersonator", "-o", "json").json()
    patch = ("-n", "karmada-cluster", "patch", "secret", "member1-impersonator", "--type=merge", "-p")
    kubectl(*patch, '{"data":{"token":"d3Jvbmc="}}')
    eventually_blocking(lambda: "Unauthorized" in kubectl("get", "--raw", path, check=False).err)
    kubectl(*patch, json.dumps({"data": {"token": secret["data"]["token"]}}))
    eventually_blocking(lambda: kubectl("get", "--raw", path, check=False).code == 0)


@pytest.mark.usefixtures("member")
def test_rights_are_those_of_the_control_plane(kubectl: Program, tmp_path: Path) -> None:
    joe = as_user(kubectl, "joe-token", tmp_path)
    refused = joe("get", "clusters", check=False)
    assert 'User "joe" cannot list resource "clusters" in API group "cluster.karmada.io"' in refused.err
    refused = joe("get", "--raw", f"{PROXIES.format('member1')}/api/v1/nodes", check=False)
    assert refused.err.strip() == (
        'Error from server (Forbidden): clusters.cluster.karmada.io "member1" is forbidden: User "joe" cannot get '
        'resource "clusters/proxy" in API group "cluster.karmada.io" at the cluster scope'
    )
    kubectl("create", "clusterrole", "proxies", "--verb=*", "--resource=clusters.cluster.karmada.io/proxy")
    kubectl("create", "clusterrolebinding", "joe-proxies", "--clusterrole=proxies", "--user=joe")
    inside = joe("get", "--raw", f"{PROXIES.format('member1')}/api/v1/nodes", check=False)
    assert 'nodes is forbidden: User "joe" cannot list resource "nodes"' in inside.err, "the member's own answer"


def direct(
    behind: AggregatedProcess, path: str, token: str = "", headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """Past the control plane."""
    tls = ssl.create_default_context(cafile=str(behind.certificates / "ca.crt"))
    sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
    request = urllib.request.Request(f"https://127.0.0.1:{behind.port}{path}", headers=sent)
    try:
        with urllib.request.urlopen(request, context=tls, timeout=LIMIT) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_direct_caller_is_authenticated_by_review(kubectl: Program, behind: AggregatedProcess) -> None:
    assert direct(behind, "/readyz") == (200, "ok")
    assert direct(behind, "/healthz")[0] == 200
    code, output = direct(behind, f"{PATH}/clusters")
    assert code == 403
    assert 'User "system:anonymous" cannot list resource' in json.loads(output)["message"]
    assert direct(behind, f"{PATH}/clusters", "nonsense")[0] == 401
    kubectl("create", "clusterrole", "readers", "--verb=get,list", "--resource=clusters.cluster.karmada.io")
    kubectl("create", "clusterrolebinding", "readers", "--clusterrole=readers", "--group=crew")
    code, output = direct(behind, f"{PATH}/clusters", "jane-token")
    assert (code, json.loads(output)["kind"]) == (200, "ClusterList")


def test_headers_alone_convince_nobody(behind: AggregatedProcess) -> None:
    forged = {"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"}
    code, output = direct(behind, f"{PATH}/clusters", headers=forged)
    assert (code, "system:anonymous" in output) == (403, True)


def test_only_clusters_are_served(behind: AggregatedProcess) -> None:
    groups = json.loads(direct(behind, "/apis", "jane-token")[1])
    assert [group["name"] for group in groups["groups"]] == ["cluster.karmada.io"]
    documents = json.loads(direct(behind, "/openapi/v3", "jane-token")[1])["paths"]
    assert [path for path in documents if path.count("/") > 1] == [PATH.removeprefix("/")]
    assert direct(behind, "/api/v1/secrets", "jane-token")[0] in (403, 404)


def test_clusters_survive_a_restart(kubectl: Program, behind: AggregatedProcess) -> None:
    kubectl("apply", "-f", "-", stdin=CLUSTER.replace("NAME", "lasting"))
    assert behind.stop() == 0
    assert "rror" in kubectl("get", "clusters", check=False).err
    behind.start()
    eventually_blocking(lambda: "lasting" in kubectl("get", "clusters", check=False).out)


def test_on_etcd_beside_the_control_plane(kubectl_path: str, tmp_path: Path) -> None:
    """Both have the same prefix; each minds its own keys."""
    etcd = EtcdCluster(tmp_path / "etcd", size=1)
    etcd.start()
    front = ServerProcess(tmp_path / "front", ["--storage", f"{etcd.url}?prefix=/registry"])
    behind = AggregatedProcess(tmp_path / "behind", tmp_path / "front" / "admin.kubeconfig")
    behind.arguments = ["--etcd-servers", f"http://{etcd.addresses[0]}", "--etcd-prefix", "/registry"]
    try:
        front.start()
        behind.start()
        kubectl = Program([kubectl_path], tmp_path, front.kubeconfig)
        behind.register(kubectl)
        kubectl("apply", "-f", "-", stdin=CLUSTER.replace("NAME", "stored"))
        keys = etcd.ctl("get", "--prefix", "--keys-only", "/registry/cluster.karmada.io")
        assert keys.split() == ["/registry/cluster.karmada.io/clusters/stored"]
        assert behind.stop() == 0
        behind.start()
        eventually_blocking(lambda: kubectl("get", "clusters", "-o", "name", check=False).lines)
    finally:
        if behind.process is not None:
            behind.stop()
        front.stop()
        etcd.stop()


def test_a_few_rights_are_all_it_needs(kubectl: Program, front: ServerProcess, tokens: Path, tmp_path: Path) -> None:
    kubectl("create", "clusterrolebinding", "delegates", "--clusterrole=system:auth-delegator", "--user=server")
    reader = "--role=extension-apiserver-authentication-reader"
    kubectl("-n", "kube-system", "create", "rolebinding", "reads-authorities", reader, "--user=server")
    kubectl("create", "clusterrole", "secrets", "--verb=get,list,watch", "--resource=secrets")
    kubectl("create", "clusterrolebinding", "secrets", "--clusterrole=secrets", "--user=server")
    config = yaml.safe_load(front.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "server-token"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    server = AggregatedProcess(tmp_path / "behind", tmp_path / "kubeconfig", ["--storage", "memory://"])
    server.start()
    try:
        assert direct(server, f"{PATH}/clusters", "nonsense")[0] == 401
        assert direct(server, f"{PATH}/clusters", "joe-token")[0] == 403
    finally:
        assert server.stop() == 0


def test_it_waits_for_the_control_plane_and_can_be_stopped_meanwhile(tmp_path: Path, front: ServerProcess) -> None:
    config = yaml.safe_load(front.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(yaml.safe_dump(config))
    server = AggregatedProcess(tmp_path / "behind", nowhere, ["--storage", "memory://"])
    server.launch()
    eventually_blocking(lambda: "127.0.0.1:1" in server.log())
    assert server.stop() == 0


@cases(
    ([], "say where its objects are stored"),
    (["--etcd-servers", "https://127.0.0.1:2379"], "needs --etcd-cafile"),
    (["--storage", "memory://", "--feature-gates", "Nonsense=true"], "Nonsense"),
)
def test_what_cannot_work_is_reported_at_once(
    arguments: list[str], why: str, tmp_path: Path, front: ServerProcess
) -> None:
    server = AggregatedProcess(tmp_path, front.kubeconfig, arguments)
    server.launch()
    assert server.process is not None
    assert server.process.wait(LIMIT) != 0
    assert why in server.log()

"""karmadactl describe, side by side with the kubectl of this machine: the same objects, the same words."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from karmada.cli.karmadactl import main
from karmada.kube.client.client import Client
from karmada.kube.client.discovery import NoMatch
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, DEPLOYMENTS, EVENTS, NODES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_all
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.eventually import eventually, eventually_blocking
from tests.support.kubectl_plane import Plane, plane
from tests.support.programs import Program, Result
from tests.support.rights import binding, role, user

ZOO = Path(__file__).parent / "describing" / "zoo.yaml"
KUBECTL = shutil.which("kubectl") or ""
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="kubectl is not on PATH")
TRIES = 6
_AGE = re.compile(r"\b(?:\d+[dhms])+\b|\b\d\d:\d\d:\d\d\b")


@dataclass
class Lab:
    """A control plane with one member, in which the zoo lives."""

    plane: Plane
    member_config: Path
    admin: Client
    version: int
    """The minor version of kubectl."""

    def kubectl(self, *words: str, at: str = "member") -> Result:
        config = self.member_config if at == "member" else self.plane.server.kubeconfig
        return Program([KUBECTL], self.plane.folder / "home", config)(*words, check=False)

    def ctl(self, *words: str, at: str = "member") -> Result:
        """By default straight to the member, as if it were a control plane."""
        config = self.member_config if at == "member" else self.plane.server.kubeconfig
        done = CliRunner().invoke(main, ["--kubeconfig", str(config), *words])
        return Result(done.exit_code, done.stdout, done.stderr)

    def run(self, task: object) -> object:
        return self.plane.background.run(task)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("describe")
    (folder / "home").mkdir()
    with Background() as background:
        control = plane(background, folder, KUBECTL)
        sim = control.join("m1")
        admin = sim.server.client()
        background.run(populate(admin))
        found = Lab(control, sim.kubeconfig, admin, 0)
        if KUBECTL:
            output = orjson.loads(found.kubectl("version", "--client", "-o", "json").out)
            found.version = int(output["clientVersion"]["minor"].rstrip("+"))
        eventually_blocking(lambda: background.run(settled(admin)))
        yield found


async def populate(client: Client) -> None:
    for obj in load_all(ZOO.read_bytes()):
        gvr = await served(client, obj)
        namespaced = (await client.mapper.kind_of(gvr)).namespaced
        metadata = {**({"namespace": "default"} if namespaced else {}), **obj["metadata"]}
        try:
            await client.create(gvr, {**obj, "metadata": metadata})
        except ApiError as error:
            raise AssertionError(f"{obj['kind']} {metadata['name']}: {error.message}") from error
    other = await client.get(GVR("", "v1", "configmaps"), "other", "default")
    await client.create(EVENTS, series_of(other))
    await client.delete(PODS, "defaults", "default")
    await client.patch(NODES, "m1-node-1", "", {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})


async def served(client: Client, obj: Obj) -> GVR:
    """The kinds of the zoo itself take a moment."""

    async def found() -> GVR | None:
        try:
            return await client.resource_of(obj)
        except NoMatch:
            await client.mapper.refresh()
            return None

    resource: GVR = await eventually(found, show=lambda: f"{obj['kind']} is not served")
    return resource


def series_of(obj: Obj) -> Obj:
    reference = {"kind": "ConfigMap", "namespace": "default", "name": "other", "uid": obj["metadata"]["uid"]}
    return {
        "metadata": {"name": "series", "namespace": "default"},
        "involvedObject": reference,
        "eventTime": "2020-01-01T13:00:00.000000Z",
        "series": {"count": 5, "lastObservedTime": "2020-02-01T13:30:00.000000Z"},
        "reportingComponent": "me",
        "reportingInstance": "me-1",
        "action": "Looking",
        "reason": "Because",
        "type": "Normal",
        "message": "  with spaces around it  \n",
    }


async def settled(client: Client) -> bool:
    web = await client.get(DEPLOYMENTS, "web", "default")
    ended = await client.get(PODS, "failing", "default")
    return (web.get("status") or {}).get("readyReplicas") == 3 and ended["status"]["phase"] == "Failed"


# --- the same words

NEWER = {
    "services": re.compile(r"^(AppProtocol|Traffic Distribution):.*\n", re.MULTILINE),
}
"""What kubectl shows since versions that are not looked at here."""
SINCE_1_33 = {
    "pods": re.compile(r"^ +(ConfigMapOptional|SecretOptionalName|Optional):.*\n", re.MULTILINE),
    "daemonsets": re.compile(r"^Namespace:.*\n", re.MULTILINE),
}
"""What kubectl before 1.33 shows otherwise."""
UNSORTED = {"configmaps", "secrets", "limitranges", "namespaces"}
"""Of which kubectl shows the parts in any order."""


def still(text: str) -> str:
    """With the same age everywhere."""
    return _AGE.sub(lambda found: re.sub(r"\d", "0", found[0]), text)


def comparable(lab: Lab, kind: str, text: str) -> str:
    text = still(text)
    leave_out = NEWER.get(kind) or (SINCE_1_33.get(kind) if lab.version < 33 else None)
    if leave_out is not None:
        text = re.sub(r" {2,}", "  ", leave_out.sub("", text))
    if kind in UNSORTED:
        text = "\n".join(sorted(text.split("\n")))
    return text


def the_same(lab: Lab, *words: str, kind: str = "", at: str = "member") -> Result:
    """kubectl's result, which ours is the same as; things may change in between, so it is compared until it is."""
    kind = kind or words[0]

    def compared() -> Result:
        theirs, ours = lab.kubectl("describe", *words, at=at), lab.ctl("describe", *words, at=at)
        expected, got = ((one.code, comparable(lab, kind, one.out), one.err) for one in (theirs, ours))
        assert got == expected
        return theirs

    same: Result = eventually_blocking(compared)
    return same


@needs_kubectl
@cases(
    "pods",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "replicationcontrollers",
    "services",
    "endpoints",
    "endpointslices",
    "ingresses",
    "ingressclasses",
    "networkpolicies",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "persistentvolumeclaims",
    "storageclasses",
    "csinodes",
    "roles",
    "clusterroles",
    "rolebindings",
    "clusterrolebindings",
    "horizontalpodautoscalers",
    "poddisruptionbudgets",
    "resourcequotas",
    "limitranges",
    "priorityclasses",
    "certificatesigningrequests",
    "gadgets",
    "customresourcedefinitions",
    "leases",
    "controllerrevisions",
    "apiservices",
    "events",
)
def test_every_kind_is_described_as_kubectl_does(kind: str, lab: Lab) -> None:
    assert the_same(lab, kind, "-A").out


@needs_kubectl
@cases("clusters", "customresourcedefinitions", "clusterroles", "namespaces", "secrets")
def test_so_is_what_the_control_plane_has(kind: str, lab: Lab) -> None:
    assert the_same(lab, kind, "-A", at="plane").out


@needs_kubectl
@cases(
    ["pods", "plain"],
    ["pods/plain"],
    ["po", "plain", "failing"],
    ["pods", "web-"],
    ["deploy/web", "sts/db"],
    ["deploy,pdb", "web"],
    ["deployments.v1.apps/web"],
    ["hpa.v1.autoscaling", "web"],
    ["pods", "-l", "app=web"],
    ["pods", "-l", "app=web", "--chunk-size=1", "--show-events=false"],
    ["pods,deploy", "-l", "app=web", "-n", "default"],
    ["pods", "-l", "app=nothing"],
    ["pods", "-l", "app=nothing", "-A"],
    ["pods", "-l", "=="],
    ["pod", "missing"],
    ["pod", "plain", "missing"],
    ["pod", "missing", "missed"],
    ["pods", "plain", "-l", "a=b"],
    ["pods", "plain", "-A"],
    ["gizmos"],
    ["gizmos", "one"],
    ["ns", "quotas", "-n", "elsewhere"],
    ["-f", "missing.yaml"],
    ["-f", str(ZOO), "pods"],
    ids=" ".join,
)
def test_words_are_understood_as_kubectl_does(words: list[str], lab: Lab) -> None:
    the_same(lab, *words, kind="namespaces" if words[0] == "ns" else "pods")


@needs_kubectl
def test_files_name_what_is_described(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "some.yaml"
    file.write_text(
        "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: gone}\n"
    )
    output = the_same(lab, "-f", str(file))
    assert output.err == 'Error from server (NotFound): secrets "gone" not found\n'
    assert "Reference:" in output.out
    assert output.code == 1


# --- without kubectl


def test_a_member_is_described_through_the_control_plane(lab: Lab) -> None:
    straight = lab.ctl("describe", "deploy", "web")
    through = lab.ctl("describe", "deploy", "web", "-C", "m1", at="plane")
    assert straight.code == 0
    assert still(through.out) == still(straight.out)
    assert lab.ctl("describe", "deploy", "web", "-s", "members", "--cluster=m1", at="plane").code == 0
    assert 'deployments.apps "web" not found' in lab.ctl("describe", "deploy", "web", at="plane").err
    named = lab.ctl("describe", "deploy", "web", "-s", "karmada", "-C", "m1", at="plane")
    assert named.err == 'Error from server (NotFound): deployments.apps "web" not found\n'


@cases(
    (
        [],
        'error: You must specify the type of resource to describe. Use "karmadactl api-resources" for a complete '
        "list of supported resources.\n",
    ),
    (["pods", "-s", "members"], "error: must specify a member cluster\n"),
    (["pods", "-s", "all"], "error: not support operation scope: all\n"),
    (["pods", "-s", "moon"], "error: not support OperationScope: moon\n"),
    (
        ["pods", "-C", "m9"],
        'Error from server (NotFound): clusters.cluster.karmada.io "m9" not found\n',
    ),
    (["pods", "-f", "x.yaml"], "error: when paths, URLs, or stdin is provided as input, you may not specify "),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_said_in_one_line(words: list[str], text: str, lab: Lab) -> None:
    result = lab.ctl("describe", *words, at="plane")
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith(text)
    assert result.err.count("\n") == 1


def test_what_is_found_is_shown_although_something_else_is_missing(lab: Lab) -> None:
    result = lab.ctl("describe", "cm/settings", "cm/missing", "pdb/pct")
    assert result.err == 'Error from server (NotFound): configmaps "missing" not found\n'
    assert result.code == 1
    assert [line.split()[1] for line in result.lines if line.startswith("Name:")] == ["settings", "pct"]


def test_events_are_shown_unless_they_are_not_wanted(lab: Lab) -> None:
    assert "Events:" in lab.ctl("describe", "cm", "other").out
    assert "Events:" not in lab.ctl("describe", "cm", "other", "--show-events=false").out


def test_one_may_look_without_seeing_events(lab: Lab) -> None:
    """Whoever may read pods and nothing else sees the pod, without the section on events."""
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    lab.plane.create(CLUSTER_ROLES, role("reader", rule))
    lab.plane.create(CLUSTER_ROLE_BINDINGS, binding("reader", user("eve")))
    lab.plane.create(GVR("", "v1", "configmaps"), {"metadata": {"name": "mine", "namespace": "default"}})
    config = lab.plane._kubeconfig("eve")
    done = CliRunner().invoke(main, ["describe", "cm", "mine", "--kubeconfig", str(config)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "Events" not in done.stdout
    done = CliRunner().invoke(main, ["describe", "secrets", "--kubeconfig", str(config)])
    assert done.exit_code == 1
    assert done.stderr.startswith('Error from server (Forbidden): secrets is forbidden: User "eve" cannot list')


def test_help_has_examples() -> None:
    done = CliRunner().invoke(main, ["describe", "--help"])
    assert done.exit_code == 0
    assert "Examples:\n" in done.stdout

"""karmadactl top: members with metrics, one without, and one that does not answer."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.commands.top import node_table, pod_table, sorted_nodes, sorted_pods
from karmada.cli.karmadactl import main
from karmada.cli.targeting import session
from karmada.cli.targeting.usage import Amount, NodeUse, PodUse
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import AlreadyExists
from karmada.kube.objects.gvrs import ACCOUNTS, APISERVICES, NAMESPACES, PODS
from karmada.kube.objects.types import Obj
from karmada.kube.sim.cluster import SimCluster
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking
from tests.support.kubectl_plane import Plane, plane
from tests.support.programs import Program, Result

KUBECTL = shutil.which("kubectl") or ""
OLD, MEASURED = 300.0, 30.0
CORE, MIB = 10**9, 2**20 * 10**9


@dataclass
class Lab:
    plane: Plane
    sims: dict[str, SimCluster]

    def top(self, *words: str) -> Result:
        done = CliRunner().invoke(main, ["top", *words, "--kubeconfig", str(self.plane.server.kubeconfig)])
        return Result(done.exit_code, done.stdout, done.stderr)

    def kubectl(self, member: str, *words: str) -> Result:
        return Program([KUBECTL], self.plane.folder / "home", self.sims[member].kubeconfig)("top", *words)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """m1 and m2 have pods that use what their annotations say; m3 has no metrics, m4 is down."""
    folder = tmp_path_factory.mktemp("top")
    (folder / "home").mkdir()
    with Background() as background:
        control = plane(background, folder, KUBECTL)
        lab = Lab(control, {name: control.join(name) for name in ("m1", "m2", "m3", "m4")})
        background.run(populate(lab.sims["m1"], "m1"))
        background.run(populate(lab.sims["m2"], "m2"))
        background.run(without_metrics(lab.sims["m3"]))
        background.run(lab.sims["m4"].stop())
        eventually_blocking(lambda: "both" in lab.top("pod", "-C", "m1,m2").out)
        yield lab


async def populate(sim: SimCluster, name: str) -> None:
    client = sim.server.client()
    await namespace(client, "other")
    await namespace(client, "new")
    sim.change_clock(1.0, -OLD)
    await client.create(PODS, pod("waits", "cpu=1", nodeSelector={"is": "missing"}))
    sim.change_clock(1.0, OLD)
    await client.create(PODS, pod("both", "cpu=250m,memory=100Mi"))
    await client.create(PODS, pod("small", "cpu=100m,memory=300Mi", namespace="other"))
    if name == "m1":
        await client.create(PODS, pod("alone", "cpu=1500m,memory=50Mi", containers=2))
    await running(client, "both")
    await running(client, "small", "other")
    sim.change_clock(1.0, MEASURED)
    await client.create(PODS, pod("new", "cpu=1", namespace="new", nodeSelector={"is": "missing"}))


async def namespace(client: Client, name: str) -> None:
    """With the account that pods in it have."""
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    with suppress(AlreadyExists):
        await client.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})


def pod(name: str, load: str, namespace: str = "default", containers: int = 1, **spec: object) -> Obj:
    own = [{"name": f"c{number}", "image": "nginx"} for number in range(containers)]
    note = {"sim.io/load": f"{load},jitter=0"}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": name}, "annotations": note}
    return {"metadata": metadata, "spec": {"containers": own, **spec}}


async def running(client: Client, name: str, namespace: str = "default") -> None:
    watch = await client.watch(PODS, namespace, field_selector=f"metadata.name={name}")
    async for event in watch:
        if (event.object.get("status") or {}).get("phase") == "Running":
            return


async def without_metrics(sim: SimCluster) -> None:
    await sim.server.client().delete(APISERVICES, "v1beta1.metrics.k8s.io")


def rows(result: Result) -> list[list[str]]:
    return [line.split() for line in result.out.splitlines()]


# --- pods


def test_pods_of_several_members_stand_in_one_table(lab: Lab) -> None:
    result = lab.top("pod", "-C", "m1,m2")
    assert (result.code, result.err) == (0, "")
    assert rows(result) == [
        ["NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"],
        ["alone", "m1", "1500m", "50Mi"],
        ["both", "m1", "250m", "100Mi"],
        ["both", "m2", "250m", "100Mi"],
    ]
    assert lab.top("pods", "--clusters=m2", "--clusters=m1").out == result.out
    assert rows(lab.top("po", "-C", "m1", "-C", "m2", "--no-headers")) == rows(result)[1:]


def test_all_namespaces_and_containers_have_columns_of_their_own(lab: Lab) -> None:
    everywhere = rows(lab.top("pod", "-A", "-C", "m1,m2"))
    assert everywhere[0] == ["NAMESPACE", "NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"]
    assert [row[:3] for row in everywhere[1:]] == [
        ["default", "alone", "m1"],
        ["default", "both", "m1"],
        ["other", "small", "m1"],
        ["default", "both", "m2"],
        ["other", "small", "m2"],
    ]
    inside = rows(lab.top("pod", "alone", "--containers", "-C", "m1"))
    assert inside[0] == ["POD", "NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"]
    assert [row[:3] for row in inside[1:]] == [["alone", "c0", "m1"], ["alone", "c1", "m1"]]


def test_the_largest_come_first_if_wanted_and_a_sum_last(lab: Lab) -> None:
    by_memory = rows(lab.top("pod", "-A", "-C", "m1", "--sort-by=memory", "--sum"))
    assert [row[1] for row in by_memory[1:4]] == ["small", "both", "alone"]
    assert by_memory[4:] == [["________", "________"], ["1850m", "450Mi"]]
    assert [row[0] for row in rows(lab.top("pod", "-C", "m1", "--sort-by", "cpu", "--no-headers"))] == ["alone", "both"]


def test_selectors_choose_pods(lab: Lab) -> None:
    assert [row[:2] for row in rows(lab.top("pod", "-l", "app=alone", "-C", "m1,m2"))[1:]] == [["alone", "m1"]]
    chosen = rows(lab.top("pod", "--field-selector", "metadata.name=both", "-C", "m1,m2"))
    assert [row[:2] for row in chosen[1:]] == [["both", "m1"], ["both", "m2"]]


def test_a_name_that_one_member_has_is_no_failure_of_the_others(lab: Lab) -> None:
    result = lab.top("pod", "alone", "-C", "m1,m2")
    assert (result.code, result.err) == (0, "")
    assert [row[0] for row in rows(result)] == ["NAME", "alone"]
    missing = lab.top("pod", "nobody", "-C", "m1,m2")
    assert missing.code == 1
    assert missing.err == 'cluster(m1): pods "nobody" not found\ncluster(m2): pods "nobody" not found\n'


def test_members_that_fail_are_named_and_the_others_shown(lab: Lab) -> None:
    result = lab.top("pod")
    assert result.code == 1
    assert [row[:2] for row in rows(result)[1:]] == [["alone", "m1"], ["both", "m1"], ["both", "m2"]]
    without, down = result.err.splitlines()
    assert without == "cluster(m3): metrics API not available"
    assert down.startswith("cluster(m4): ")
    alone = lab.top("pod", "-C", "m3")
    assert (alone.code, alone.out) == (1, "")
    assert alone.err == "error: cluster(m3): metrics API not available\n"


def test_pods_that_were_not_measured(lab: Lab) -> None:
    waits = lab.top("pod", "waits", "-C", "m1")
    assert re.fullmatch(
        r"error: cluster\(m1\): Metrics not available for pod default/waits, age: \d+m\d+s\n", waits.err
    )
    assert lab.top("pod", "-n", "new", "-C", "m1").err == "error: cluster(m1): metrics not available yet\n"


def test_nothing_at_all_is_no_failure(lab: Lab) -> None:
    result = lab.top("pod", "-n", "kube-public", "-C", "m1,m2")
    assert (result.code, result.out, result.err) == (0, "", "No resources found in kube-public namespace.\n")
    result = lab.top("pod", "-A", "-l", "app=nothing", "-C", "m1")
    assert (result.code, result.out, result.err) == (0, "", "No resources found\n")


@pytest.mark.skipif(not KUBECTL, reason="kubectl is not on PATH")
@cases(
    ["pod"],
    ["pod", "-A"],
    ["pod", "--containers"],
    ["pod", "-A", "--containers", "--sort-by=memory"],
    ["pod", "--sum", "-A"],
    ["pod", "--no-headers", "--sort-by=cpu"],
    ["pod", "both"],
    ["pod", "-l", "app in (alone, both)"],
    ids=" ".join,
)
def test_but_for_the_cluster_it_is_kubectls_table(words: list[str], lab: Lab) -> None:
    cluster = "m1 {4}" if "--no-headers" in words else "(CLUSTER|m1     ) {3}"
    ours = [re.sub(cluster, "", line) for line in lab.top(*words, "-C", "m1").out.splitlines()]
    theirs = lab.kubectl("m1", *words).out.splitlines()
    if "--sum" in words:
        *ours, line, total = ours
        *theirs, _, _ = theirs
        assert (line.split(), total.split()) == (["________", "________"], ["1850m", "450Mi"])
    assert ours == theirs


# --- nodes


def test_nodes_of_several_members_stand_in_one_table(lab: Lab) -> None:
    result = lab.top("node", "--clusters", "m1,m2")
    assert (result.code, result.err) == (0, "")
    title, *found = rows(result)
    assert title == ["NAME", "CLUSTER", "CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"]
    assert [row[:2] for row in found] == [["m1-node-1", "m1"], ["m2-node-1", "m2"]]
    assert all(re.fullmatch(r"\d+m \d+% \d+Mi \d+%", " ".join(row[2:])) for row in found)
    assert found[0][2:4] == ["1910m", "47%"]
    assert [row[0] for row in rows(lab.top("no", "--clusters=m1,m2", "--sort-by=cpu"))[1:]] == [
        "m1-node-1",
        "m2-node-1",
    ]


def test_one_node_and_what_it_has_in_all(lab: Lab) -> None:
    one = lab.top("nodes", "m2-node-1", "--clusters=m1,m2", "--show-capacity", "--no-headers")
    assert (one.code, one.err) == (0, "")
    assert [row[:2] for row in rows(one)] == [["m2-node-1", "m2"]]
    missing = lab.top("node", "m9-node-1", "--clusters=m1")
    assert (missing.code, missing.err) == (1, 'error: cluster(m1): nodes "m9-node-1" not found\n')
    nothing = lab.top("node", "-l", "no=node", "--clusters=m1")
    assert (nothing.code, nothing.err) == (0, "No resources found\n")


# --- mistakes


@cases(
    (["pod", "a", "b"], "error: pod [NAME | -l label]\nSee 'karmadactl top pod -h' for help and examples\n"),
    (["node", "a", "b"], "error: node [NAME | -l label]\nSee 'karmadactl top node -h' for help and examples\n"),
    (["pod", "a", "-l", "b=c"], "error: only one of NAME or selector can be provided\n"),
    (["pod", "a", "--field-selector", "b=c"], "error: only one of NAME or selector can be provided\n"),
    (["node", "a", "-l", "b=c"], "error: only one of NAME or --selector can be provided\n"),
    (["pod", "--sort-by", "age"], "error: --sort-by accepts only cpu or memory\n"),
    (["pod", "-l", "=="], "error: found '==', expected: !, identifier, or 'end of string'\n"),
    (["pod", "-C", "m1,m8,m9"], "error: clusters don't exist: m8,m9\n"),
    (["pot"], "error: unknown command \"pot\"\nSee 'karmadactl top -h' for help and examples\n"),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors_are_reported_as_kubectl_does(words: list[str], text: str, lab: Lab) -> None:
    result = lab.top(*words)
    assert (result.code, result.out, result.err) == (1, "", text)


def test_top_alone_shows_its_help_and_fails() -> None:
    done = CliRunner().invoke(main, ["top"])
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "Available Commands:" in done.stderr


@cases(["top"], ["top", "pod"], ["top", "node"], ids=" ".join)
def test_help_has_examples(words: list[str]) -> None:
    done = CliRunner().invoke(main, [*words, "--help"])
    assert done.exit_code == 0
    assert "Examples:\n" in done.stdout


# --- tables


def test_sums_are_rounded_once() -> None:
    pods = [PodUse("m", "d", name, [("c", Amount(CORE // 10_000, MIB // 2))]) for name in "ab"]
    text = pod_table(sorted_pods(pods, ""), namespaces=False, containers=False, headers=False, total=True)
    assert [line.split() for line in text.splitlines()] == [
        ["a", "m", "1m", "0Mi"],
        ["b", "m", "1m", "0Mi"],
        ["________", "________"],
        ["1m", "1Mi"],
    ]


def test_nodes_that_nobody_measured_come_last() -> None:
    has = Amount(4 * CORE, 1000 * MIB)
    nodes = [
        NodeUse("m", "a", None, has),
        NodeUse("m", "b", Amount(CORE, 999 * MIB), has),
        NodeUse("m", "c", None, Amount()),
    ]
    for order in ("", "cpu", "memory"):
        text = node_table(sorted_nodes(nodes, order), headers=False)
        assert [line.split() for line in text.splitlines()] == [
            ["b", "m", "1000m", "25%", "999Mi", "99%"],
            ["a", "m", *["<unknown>"] * 4],
            ["c", "m", *["<unknown>"] * 4],
        ]


def test_pages_of_documentation_name_these_commands() -> None:
    page = (Path(__file__).parents[3] / "docs/troubleshooting-commands.md").read_text()
    for command in ("karmadactl describe", "karmadactl top pod", "karmadactl top node"):
        assert command in page


@cases("pod", "node")
def test_a_member_that_keeps_silent_costs_its_time_out_and_is_named(
    what: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MEMBER_SECONDS", 0.05)
    with lab.plane.silent([lab.sims["m1"], lab.sims["m2"]]):
        result = lab.top(what, "--clusters", "m1,m2")
    assert (result.code, result.err.splitlines()) == (
        1,
        ["cluster(m1): no response within 0.05s", "cluster(m2): no response within 0.05s"],
    )


@cases("pod", "node")
def test_a_name_that_leads_elsewhere_is_not_requested(what: str, lab: Lab) -> None:
    assert lab.top(what, "..").err == "error: invalid resource name \"..\": [may not be '..']\n"

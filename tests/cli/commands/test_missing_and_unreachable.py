"""What commands report when a namespace does not exist, a member cannot be reached, or no cluster is given."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from karmada.cli.karmadactl import main
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import NAMESPACES
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.kubectl_plane import Plane, plane
from tests.support.objects import kube_object

PODS, CLUSTERS = GVR("", "v1", "pods"), GVR("cluster.karmada.io", "v1alpha1", "clusters")
NO_IMPERSONATOR = "warning: cluster(bare) is skipped: it has no spec.impersonatorSecretRef; join it"

PULL = "warning: cluster(pulls) is skipped: it is in Pull mode and the control plane cannot reach it"
Run = Callable[..., Result]


def cluster(name: str, mode: str) -> dict[str, Any]:
    return kube_object(
        "cluster.karmada.io/v1alpha1", "Cluster", name, spec={"syncMode": mode, "apiEndpoint": "https://127.0.0.1:1"}
    )


def pod(name: str) -> dict[str, Any]:
    return kube_object("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]})


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """m1, m2 have pod `both`, m1 also `one` and namespace `empty`; `bare` has no impersonator, `pulls` pulls."""
    with Background() as background:
        found = plane(background, tmp_path_factory.mktemp("fleet"), shutil.which("kubectl") or "kubectl")
        members = {name: found.join(name).server.client() for name in ("m1", "m2")}
        for name, one in (("m1", "both"), ("m1", "one"), ("m2", "both")):
            background.run(members[name].create(PODS, pod(one)))
        found.create(CLUSTERS, cluster("bare", "Push"))
        found.create(CLUSTERS, cluster("pulls", "Pull"))
        empty = kube_object("v1", "Namespace", "empty")
        found.create(NAMESPACES, empty)
        background.run(members["m1"].create(NAMESPACES, empty))
        yield found


@pytest.fixture
def run(fleet: Plane) -> Run:
    def invoke(*words: str) -> Result:
        return CliRunner().invoke(main, ["--kubeconfig", str(fleet.server.kubeconfig), *words])

    return invoke


# a namespace that does not exist


@cases(
    ["get", "cm", "a", "-s", "karmada"],
    ["get", "cm", "a", "b", "-s", "karmada"],
    ["get", "cm/a", "secret/b", "-s", "karmada", "-o", "yaml"],
    ["describe", "cm", "a"],
    ["describe", "cm/a"],
    ["label", "cm", "a", "b", "x=y"],
    ["annotate", "cm", "a", "x=y"],
    ["patch", "cm", "a", "b", "-p", "{}"],
    ["edit", "cm/a"],
    ["get", "pods", "a", "-C", "m1"],
    ["logs", "a", "-C", "m1"],
    ids=" ".join,
)
def test_a_missing_namespace_is_reported_once_instead_of_what_would_be_in_it(words: list[str], run: Run) -> None:
    result = run(*words, "-n", "nowhere")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count('namespaces "nowhere" not found') == 1
    assert len(result.stderr.splitlines()) == 1


@cases(
    (["get", "cm", "a", "-s", "karmada", "-n", "empty"], 'configmaps "a" not found'),
    (["label", "cm", "a", "x=y", "-n", "default"], 'configmaps "a" not found'),
    (["delete", "cm", "a", "-n", "nowhere"], 'configmaps "a" not found'),
    (["logs", "a", "-C", "m1,m2", "-n", "empty"], 'pods "a" not found in namespace "empty"'),
    (["logs", "a", "-C", "m2,m1", "-n", "empty"], 'pods "a" not found in namespace "empty"'),
)
def test_an_object_is_reported_where_its_namespace_exists_and_when_it_is_deleted(
    words: list[str], message: str, run: Run
) -> None:
    result = run(*words)
    assert (result.exit_code, message in result.stderr, "namespaces" in result.stderr) == (1, True, False)


# members that cannot be reached


@cases(["get", "pods"], ["get", "pods,cm,secrets"], ["get", "pods", "-s", "members"])
def test_each_unreachable_member_is_one_warning_and_the_others_are_shown(words: list[str], run: Run) -> None:
    result = run(*words)
    assert result.exit_code == 0
    bare, pulls = sorted(result.stderr.splitlines())
    assert bare.startswith(NO_IMPERSONATOR)
    assert pulls.startswith(PULL)
    assert {"m1", "m2"} <= set(result.stdout.split())


@cases(["get", "pods,cm", "-C", "m1,bare"], ["top", "node", "--clusters", "m1,bare"])
def test_an_unreachable_member_that_was_named_is_an_error(words: list[str], run: Run) -> None:
    result = run(*words)
    assert result.exit_code == 1
    assert result.stderr.count("it has no spec.impersonatorSecretRef") == 1
    assert "warning" not in result.stderr


def test_logs_of_all_clusters_warn_of_unreachable_ones(run: Run) -> None:
    result = run("logs", "-l", "app=none", "--all-clusters")
    assert result.exit_code == 0
    assert sorted(line.partition(":")[0] for line in result.stderr.splitlines())[1:] == ["warning", "warning"]
    named = run("logs", "-l", "app=none", "-C", "m1,bare")
    assert (named.exit_code, "error: cluster(bare): it has no spec.impersonatorSecretRef" in named.stderr) == (1, True)


# no cluster


@cases(
    ("one", "m1", ""),
    ("both", "m1", "; both is in m1, m2"),
    ("none", "NAME", "; none is in none of the members that could be read"),
)
def test_without_a_cluster_the_flag_and_the_pods_clusters_are_named(
    word: str, cluster: str, where: str, run: Run
) -> None:
    logs = run("logs", word)
    assert logs.exit_code == 1
    assert (
        logs.stderr.splitlines()[-1]
        == f"error: must specify a cluster: add --cluster {cluster} or --all-clusters{where}"
    )
    for command in (["attach", word], ["exec", word, "--", "date"]):
        result = run(*command)
        assert (result.exit_code, result.stderr.splitlines()[-1]) == (1, f"add --cluster {cluster}{where}")

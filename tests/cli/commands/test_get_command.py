"""get, explain, api-resources and api-versions: a control plane with two members behind its proxy."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from karmada.cli.commands.api_resources import api_resources
from karmada.cli.commands.api_versions import api_versions
from karmada.cli.commands.describe import describe
from karmada.cli.commands.explain import explain
from karmada.cli.commands.get import get
from karmada.cli.targeting import session, sources
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, CONFIG_MAPS, CRDS, PODS
from karmada.kube.sim.cluster import SimCluster
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.custom_kinds import definition, version
from tests.support.eventually import eventually_blocking
from tests.support.kubectl_plane import Plane, plane
from tests.support.objects import kube_object
from tests.support.rights import binding, role, user

MANAGED = {"karmada.io/managed": "true"}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return kube_object("v1", "ConfigMap", name, "default", labels=labels or {}, data=data)


def pod(name: str) -> dict[str, Any]:
    return kube_object("v1", "Pod", name, "default", spec={"containers": [{"name": "c", "image": "i"}]})


@pytest.fixture(scope="module")
def background() -> Iterator[Background]:
    with Background() as running:
        yield running


@pytest.fixture(scope="module")
def bare(background: Background, tmp_path_factory: pytest.TempPathFactory) -> Plane:
    return plane(background, tmp_path_factory.mktemp("fleet"), shutil.which("kubectl") or "kubectl")


@pytest.fixture(scope="module")
def members(bare: Plane) -> dict[str, SimCluster]:
    return {name: bare.join(name) for name in ("m1", "m2")}


@pytest.fixture(scope="module")
def fleet(background: Background, bare: Plane, members: dict[str, SimCluster]) -> Plane:
    """`settings` is in the control plane and m1, managed; `own` only in m1, a pod in each member."""
    bare.create(CONFIG_MAPS, config_map("settings", {"app": "web"}, a="1"))
    add(background, members["m1"], CONFIG_MAPS, config_map("settings", {"app": "web", **MANAGED}, a="1"))
    add(background, members["m1"], CONFIG_MAPS, config_map("own", a="1", b="2"))
    add(background, members["m1"], PODS, pod("p1"))
    add(background, members["m2"], PODS, pod("p2"))
    return bare


def add(background: Background, member: SimCluster, gvr: GVR, obj: dict[str, Any]) -> None:
    background.run(member.server.client().create(gvr, obj))


Run = Callable[..., Result]


@pytest.fixture
def run(fleet: Plane) -> Run:
    def invoke(command: click.Command, *words: str, kubeconfig: Path | None = None) -> Result:
        return CliRunner().invoke(command, [*words, "--kubeconfig", str(kubeconfig or fleet.server.kubeconfig)])

    return invoke


def rows(result: Result) -> list[list[str]]:
    """The cells of every line, ages left out."""
    assert not result.stderr, result.stderr
    return [
        [
            cell
            for cell in re.split(r" {3,}|(?<=\S) {2}(?=\S)|(?<=\S) (?=\S)", line.strip())
            if not re.fullmatch(r"\d+[smh]", cell)
        ]
        for line in result.stdout.splitlines()
    ]


# scopes


def test_a_table_shows_the_control_plane_and_its_members(run: Run) -> None:
    assert rows(run(get, "cm", "settings", "own", "--ignore-not-found")) == [
        ["NAME", "CLUSTER", "DATA", "AGE", "ADOPTION"],
        ["settings", "Karmada", "1", "-"],
        ["settings", "m1", "1", "Y"],
        ["own", "m1", "2", "N"],
    ]


def test_of_pods_adoption_is_shown_in_wide_tables_only(run: Run) -> None:
    narrow = rows(run(get, "pods"))
    assert narrow[0] == ["NAME", "CLUSTER", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:2] for row in narrow[1:]] == [["p1", "m1"], ["p2", "m2"]]
    wide = rows(run(get, "pods", "-o", "wide"))
    assert (wide[0][-1], wide[1][-1]) == ("ADOPTION", "N")


@cases(
    (["-s", "karmada"], ["Karmada"]),
    (["-s", "karmada", "-C", "m1"], ["Karmada"]),
    (["-s", "members"], ["m1"]),
    (["-s", "all"], ["Karmada", "m1"]),
    (["-C", "m1"], ["m1"]),
    ([], ["Karmada", "m1"]),
)
def test_a_scope_says_where_to_look(flags: list[str], clusters: list[str], run: Run) -> None:
    result = run(get, "cm", "-l", "app=web", "--no-headers", *flags)
    assert [row[1] for row in rows(result)] == clusters


def test_kinds_of_the_control_plane_are_looked_for_there(run: Run) -> None:
    table = rows(run(get, "clusters"))
    assert table[0] == ["NAME", "CLUSTER", "VERSION", "MODE", "READY", "AGE", "ADOPTION"]
    assert [row[:2] for row in table[1:]] == [["m1", "Karmada"], ["m2", "Karmada"]]


def test_programs_get_what_the_control_plane_has(run: Run) -> None:
    assert run(get, "cm", "-l", "app=web", "-o", "name").stdout == "configmap/settings\n"
    assert run(get, "cm", "-l", "app=web", "-o", "name", "-s", "all").stdout == "configmap/settings\n" * 2
    assert run(get, "cm", "settings", "-o", "jsonpath={.data.a}").stdout == "1"
    assert run(get, "cm", "-l", "app=web", "-o", "jsonpath={.kind} {.items[*].metadata.name}").stdout == "List settings"
    columns = run(get, "cm", "settings", "-s", "all", "-o", "custom-columns=N:.metadata.name", "-C", "m1")
    assert columns.stdout == "N\nsettings\nsettings\n"


def test_documents_of_several_sources_are_parted(run: Run) -> None:
    assert run(get, "cm", "settings", "-s", "all", "-C", "m1", "-o", "yaml").stdout.count("\n---\n") == 1


# flags


def test_labels_kinds_and_namespaces_have_columns(run: Run) -> None:
    table = rows(run(get, "cm", "-A", "-l", "app=web", "-L", "app,x", "--show-labels", "--show-kind", "-s", "members"))
    assert table[0] == ["NAMESPACE", "NAME", "CLUSTER", "DATA", "AGE", "ADOPTION", "APP", "X", "LABELS"]
    labels = "app=web,karmada.io/managed=true"
    assert table[1] == ["default", "configmap/settings", "m1", "1", "Y", "web", "<none>", labels]


def test_several_kinds_are_groups_with_their_names(run: Run) -> None:
    result = run(get, "pods,cm", "-C", "m1")
    groups = [group.splitlines() for group in result.stdout.split("\n\n")]
    assert [group[1].split("/")[0] for group in groups] == ["configmap", "pod"]
    assert rows(run(get, "pod/p1", "cm/own", "--no-headers", "-C", "m1"))[0][0] == "configmap/own"


def test_a_category_stands_for_its_kinds(run: Run) -> None:
    result = run(get, "all", "-C", "m1", "--no-headers")
    assert {line.split("/")[0] for line in result.stdout.split("\n") if line} == {"pod", "service"}


def test_rows_are_sorted_by_a_field(run: Run) -> None:
    names = [row[0] for row in rows(run(get, "cm", "-s", "members", "--no-headers", "--sort-by", ".metadata.name"))]
    assert names == sorted(names)
    result = run(get, "pods", "--sort-by", ".nope")
    assert 'couldn\'t find any field with path "{.nope}" in the list of objects' in result.stderr


def test_long_lists_come_in_pages(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rows(run(get, "cm", "-A", "-s", "all")), run(get, "cm", "-A", "-o", "name").stdout
    monkeypatch.setattr(sources, "PAGE", 1)
    assert (rows(run(get, "cm", "-A", "-s", "all")), run(get, "cm", "-A", "-o", "name").stdout) == whole
    assert len(whole[0]) > 4


def test_a_server_without_members_is_shown_as_it_is(run: Run, members: dict[str, SimCluster]) -> None:
    result = run(get, "cm", "own", kubeconfig=members["m1"].kubeconfig)
    assert rows(result)[1][:3] == ["own", "Karmada", "2"]


def test_a_selector_may_be_given_under_both_its_names(run: Run) -> None:
    found = [run(get, "cm", flag, "app=web", "-o", "name").stdout for flag in ("--selector", "--labels")]
    assert found[0] == found[1] != ""


# nothing, and what goes wrong


@cases(
    (["cm", "-l", "no=body"], "No resources found in default namespace."),
    (["cm", "-l", "no=body", "-A"], "No resources found"),
    (["ns", "-l", "no=body"], "No resources found"),
)
def test_nothing_is_no_failure(words: list[str], error: str, run: Run) -> None:
    result = run(get, *words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"{error}\n")


@cases(
    (["cm", "nope"], 'error: cluster(Karmada): configmaps "nope" not found'),
    (["cm", "nope", "-C", "m1"], 'error: cluster(m1): configmaps "nope" not found'),
    (["cm", "nope", "-C", "m1,m2"],
     'cluster(m1): configmaps "nope" not found\ncluster(m2): configmaps "nope" not found'),
    (["cm", "nope", "-o", "json"], 'error: cluster(Karmada): configmaps "nope" not found'),
    (["foo"], 'error: cluster(Karmada): the server doesn\'t have a resource type "foo"'),
    (["foo", "-C", "m2"], 'error: cluster(m2): the server doesn\'t have a resource type "foo"'),
    (["pods", "-C", "m1,m8", "-C", "m9"], "error: clusters don't exist: m8,m9"),
    (["pods", "-s", "here"], "error: not support OperationScope: here"),
    (["pods", "x", "-A"], "error: a resource cannot be retrieved by name across all namespaces"),
    (["pods", "x", "-l", "a=b"], "error: name cannot be provided when a selector is specified"),
    (["pods", "a/b"], "error: there is no need to specify a resource type as a separate argument"),
    (["pods/a/b"], "error: arguments in resource/name form may not have more than one slash"),
    (["pods/"], "error: arguments in resource/name form must have a single resource and name"),
    (["pods", "-o", "x"], 'error: unable to match a printer suitable for the output format "x"'),
    (["pods", "-o", "json", "--show-labels"], "error: --show-labels option cannot be used with json printer"),
    (["pods", "--output-watch-events"], "error: --output-watch-events option can only be used with --watch"),
    (["pods,cm", "--watch"], "error: you may only specify a single resource type"),
    (["cm", "nope", "--watch"], 'error: cluster(Karmada): configmaps "nope" not found'),
    (["pods", "-l", "a in"], "cluster(Karmada): unable to parse requirement: found '' expected: '('\ncluster(m1):"),
)  # fmt: skip
def test_what_goes_wrong_is_reported(words: list[str], error: str, run: Run) -> None:
    result = run(get, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(error), result.stderr


def test_without_a_type_an_error_names_what_is_missing(run: Run) -> None:
    result = run(get)
    assert result.exit_code == 1
    assert result.stderr.startswith("You must specify the type of resource to get.")
    assert "\n\nerror: Required resource not specified.\n" in result.stderr


def test_what_some_have_is_shown_and_the_others_are_reported(run: Run) -> None:
    result = run(get, "cm", "settings", "-s", "all")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == 'error: cluster(m2): configmaps "settings" not found\n'
    result = run(get, "cm", "settings", "-s", "all", "--ignore-not-found")
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.fixture
def silence(fleet: Plane, members: dict[str, SimCluster], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No member responds; a moment is waited for them."""
    monkeypatch.setattr(session, "MEMBER_SECONDS", 0.05)
    with fleet.silent(members.values()):
        yield


@pytest.mark.usefixtures("silence")
def test_members_that_keep_silent_cost_their_time_out_and_are_named(run: Run) -> None:
    result = run(get, "cm", "-l", "app=web", "--no-headers")
    assert (result.exit_code, [line.split()[1] for line in result.stdout.splitlines()]) == (1, ["Karmada"])
    assert result.stderr == "cluster(m1): no response within 0.05s\ncluster(m2): no response within 0.05s\n"


@pytest.mark.usefixtures("silence")
@cases((api_versions, []), (api_resources, []), (explain, ["pods"]), (describe, ["pods"]))
def test_a_member_alone_that_keeps_silent_is_named(command: click.Command, words: list[str], run: Run) -> None:
    result = run(command, *words, "-C", "m1")
    assert (result.exit_code, result.stderr) == (1, "error: cluster(m1): no response within 0.05s\n")


def test_a_watch_gets_one_deletion_of_what_no_longer_exists(run: Run) -> None:
    result = run(get, "nopes", "--watch")
    output = 'error: cluster(Karmada): the server doesn\'t have a resource type "nopes"\n'
    assert (result.exit_code, result.stderr) == (1, output)


@pytest.mark.usefixtures("silence")
def test_a_watch_names_silent_members_besides_what_the_others_do_not_have(run: Run) -> None:
    result = run(get, "nopes", "--watch")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        'cluster(Karmada): the server doesn\'t have a resource type "nopes"',
        "cluster(m1): no response within 0.05s",
        "cluster(m2): no response within 0.05s",
    ]


def test_missing_rights_are_reported_for_every_member(run: Run, fleet: Plane) -> None:
    fleet.create(CLUSTER_ROLES, role("reader", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}))
    fleet.create(CLUSTER_ROLE_BINDINGS, binding("reader", user("jane")))
    fleet.kubectl("jane")  # writes jane's kubeconfig
    result = run(get, "cm", "-l", "app=web", kubeconfig=fleet.folder / "jane.kubeconfig")
    assert result.exit_code == 1
    assert [line.split()[1] for line in result.stdout.splitlines()[1:]] == ["Karmada"]
    lines = result.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["cluster(m1)", "cluster(m2)"]
    assert all('User "jane" cannot' in line for line in lines)


def test_whoever_may_not_know_the_members_is_shown_the_control_plane(run: Run, fleet: Plane) -> None:
    fleet.create(CLUSTER_ROLES, role("settings", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}))
    fleet.create(CLUSTER_ROLE_BINDINGS, binding("settings", user("joe")))
    fleet.kubectl("joe")  # writes joe's kubeconfig
    result = run(get, "cm", "-l", "app=web", kubeconfig=fleet.folder / "joe.kubeconfig")
    assert (result.exit_code, [line.split()[1] for line in result.stdout.splitlines()[1:]]) == (1, ["Karmada"])
    assert result.stderr.startswith("error: cluster(Karmada): clusters.cluster.karmada.io is forbidden")
    result = run(get, "cm", "-s", "members", kubeconfig=fleet.folder / "joe.kubeconfig")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error from server (Forbidden): clusters.cluster.karmada.io is forbidden")


def test_kinds_that_only_members_know_are_found_there(
    run: Run, members: dict[str, SimCluster], background: Background
) -> None:
    crd = definition("example.com", "Gadget", version("v1", {"type": "object"}), shortNames=["gd"])
    metadata = {"name": "g", "namespace": "default"}
    add(background, members["m2"], CRDS, crd)
    eventually_blocking(lambda: "example.com/v1\n" in run(api_versions, "-C", "m2").stdout)
    add(
        background,
        members["m2"],
        GVR("example.com", "v1", "gadgets"),
        {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata},
    )
    assert rows(run(get, "gd"))[1:] == [["g", "m2", "N"]]
    result = run(get, "gd", "-s", "members")
    assert result.stderr == 'error: cluster(m1): the server doesn\'t have a resource type "gd"\n'
    assert run(explain, "gadgets", "-C", "m2").stdout.startswith("GROUP:      example.com\nKIND:       Gadget\n")
    assert "example.com/v1\n" not in run(api_versions).stdout


# explain and discovery


def test_explain_describes_kinds_and_fields(run: Run) -> None:
    page = run(explain, "pp.spec.conflictResolution").stdout
    assert page.startswith("GROUP:      policy.karmada.io\nKIND:       PropagationPolicy\nVERSION:    v1alpha1\n\n")
    assert "FIELD: conflictResolution <string>\nENUM:\n    Abort\n    Overwrite\n\nDESCRIPTION:\n" in page
    assert "  clusterNames\t<[]string>\n" in run(explain, "pp.spec.placement.clusterAffinity", "--recursive").stdout
    assert run(explain, "hpa", "--api-version", "autoscaling/v1").stdout.splitlines()[2] == "VERSION:    v1"
    assert (
        run(explain, "deployments.apps.spec.strategy").stdout.splitlines()[4] == "FIELD: strategy <DeploymentStrategy>"
    )
    assert run(explain, "deploy.spec", "-o", "plaintext-openapiv2").stdout.splitlines()[3] == "RESOURCE: spec <Object>"


@cases(
    ([], "error: You must specify the type of resource to explain."),
    (["a", "b"], "error: We accept only this format: explain RESOURCE"),
    (["foo"], 'the server doesn\'t have a resource type "foo"'),
    (["pods.nope"], 'error: field "nope" does not exist'),
    (["pods[0]"], "error: invalid jsonpath syntax, first node must be field node"),
    (["deploy", "--api-version", "apps/v2"], 'error: couldn\'t find resource for "apps/v2, Resource=deployments"'),
    (["pods", "-o", "x"], "error: unrecognized format: x"),
    (["pods", "-s", "members"], "error: must specify a member cluster"),
    (["pods", "-s", "all"], "error: not support operation scope: all"),
    (["pods", "-C", "m9"], 'Error from server (NotFound): clusters.cluster.karmada.io "m9" not found'),
)
def test_what_cannot_be_explained(words: list[str], error: str, run: Run) -> None:
    result = run(explain, *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(error), result.stderr


def test_resources_are_listed_with_their_names(run: Run) -> None:
    table = run(api_resources, "--api-group", "policy.karmada.io").stdout.splitlines()
    assert table[0].split() == ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]
    assert "propagationpolicies" in {line.split()[0] for line in table}
    names = run(api_resources, "--api-group=apps", "-o", "name", "--verbs", "create").stdout.splitlines()
    assert "deployments.apps" in names
    wide = run(api_resources, "-o", "wide", "--categories", "all", "--no-headers").stdout
    assert "create,delete,deletecollection,get,list,patch,update,watch" in wide
    assert '"kind": "APIResourceList"' in run(api_resources, "-o", "json").stdout


def test_only_namespaced_resources_are_listed_when_requested(run: Run) -> None:
    everything, namespaced = run(api_resources).stdout, run(api_resources, "--namespaced").stdout
    assert "\nnodes " in everything
    assert "\nnodes " not in namespaced


def test_versions_are_sorted(run: Run) -> None:
    versions = run(api_versions).stdout.split()
    assert versions == sorted(versions)
    assert {"v1", "apps/v1", "cluster.karmada.io/v1alpha1"} <= set(versions)


# kubectl


@cases(
    (explain, ["pods"]), (explain, ["pods.spec.containers", "--recursive"]), (explain, ["deploy.spec.strategy"]),
    (explain, ["pp.spec"]), (explain, ["crd.spec.versions.schema.openAPIV3Schema"]), (explain, ["cm.data"]),
    (explain, ["pods.metadata"]), (explain, ["clusters.spec", "--recursive"]),
    (api_resources, []), (api_resources, ["-o", "wide"]), (api_resources, ["-o", "name"]),
    (api_resources, ["--sort-by", "kind"]), (api_resources, ["--verbs", "list,watch"]), (api_versions, []),
    (get, ["cm", "settings", "-o", "yaml"]), (get, ["cm", "-A", "-o", "json"]), (get, ["ns", "-o", "name"]),
    (get, ["cm", "-A", "-o", "custom-columns=N:.metadata.name,L:.metadata.labels,X:.x"]),
    (get, ["cm", "-o", "go-template={{range .items}}{{.metadata.name}}\n{{end}}"]),
)  # fmt: skip
def test_kubectl_says_the_same(command: click.Command, words: list[str], run: Run, fleet: Plane) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    output = fleet.kubectl()(str(command.name), *words)
    assert run(command, *words).stdout == output.out

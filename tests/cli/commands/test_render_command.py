"""`karmadactl render`: what a cluster would get, and who made it so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from karmada.api.cluster import Cluster
from karmada.api.policy import ClusterOverridePolicy, OverridePolicy
from karmada.cli.commands.render import commented, render
from karmada.kube.objects.clock import RealClock
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import load_all, load_yaml
from karmada.overrides.engine import Overrides
from karmada.overrides.explain import explain
from tests.support.cases import cases
from tests.support.control_plane import ControlPlane, running
from tests.support.overriding import cluster, config_map, container, cop, deployment, op, rule

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: web, image: "nginx:1.19"}
"""
POLICIES = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: images}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [m1]}
    overriders:
      imageOverrider:
      - {component: Registry, operator: add, value: r.io}
      labelsOverrider:
      - {operator: add, value: {site: one}}
  - targetCluster: {labelSelector: {matchLabels: {env: prod}}}
    overriders:
      plaintext:
      - {path: /spec/replicas, operator: replace, value: 5}
"""
CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1, labels: {env: prod}}
"""


def run(*args: str, text: str | None = None) -> Result:
    return CliRunner().invoke(render, [*args], input=text)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("deployment", DEPLOYMENT), ("policies", POLICIES), ("cluster", CLUSTER)):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_every_change_has_a_comment_with_its_policy_and_rule(files: Path) -> None:
    result = run("-f", f"{files}/deployment.yaml", "-f", f"{files}/policies.yaml", "--cluster", "m1", "--local")
    assert result.exit_code == 0, result.output
    assert (
        result.stdout
        == """\
apiVersion: apps/v1
kind: Deployment
metadata:
  # OverridePolicy default/images, spec.overrideRules[0].overriders.labelsOverrider[0]: added
  labels:
    site: one
  name: web
  namespace: default
spec:
  replicas: 2
  template:
    spec:
      containers:
      # OverridePolicy default/images, spec.overrideRules[0].overriders.imageOverrider[0]: was "nginx:1.19"
      - image: r.io/nginx:1.19
        name: web
"""
    )


def test_a_cluster_in_the_files_says_what_it_is(files: Path) -> None:
    words = [word for name in ("deployment", "policies", "cluster") for word in ("-f", f"{files}/{name}.yaml")]
    result = run(*words, "--cluster", "m1", "--local")
    assert "  # OverridePolicy default/images, spec.overrideRules[1].overriders.plaintext: was 2\n  replicas: 5\n" in (
        result.stdout
    )
    result = run(*words, "--cluster", "m2", "--local")
    assert "#" not in result.stdout


def test_several_resources_and_standard_input(files: Path) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader}\n"
    text = "---\n".join((DEPLOYMENT, role, POLICIES))
    result = run("-f", "-", "--cluster", "m1", "--local", "-n", "shop", text=text)
    web, reader = load_all(result.stdout)
    assert (web["metadata"]["namespace"], reader["metadata"]) == ("shop", {"name": "reader"})
    assert web["metadata"]["labels"] == {"site": "one"}


@cases(
    (POLICIES, "error: no resource in the given files"),
    ("a: [", "error: -: error converting YAML to JSON"),
    ("kind: Pod", "error: -: apiVersion not set"),
    ("apiVersion: v1\nkind: Pod", "error: -: Pod without a name"),
    (POLICIES.replace("operator: add", "operator: swap"), 'error: -: OverridePolicy "images": Invalid enum value'),
    (
        f"{DEPLOYMENT}---\n{POLICIES}".replace("matchLabels: {env: prod}", "").replace("/spec/", "/x/"),
        'error: Deployment "web": failed to apply override policy(default/images) for cluster(m1): '
        "spec.overrideRules[1].overriders.plaintext: replace operation does not apply: doc is missing path: "
        "/x/replicas: missing value",
    ),
)  # fmt: skip
def test_what_is_wrong_is_one_line(text: str, why: str) -> None:
    result = run("-f", "-", "--cluster", "m1", "--local", text=text)
    assert result.exit_code == 1
    assert result.stderr.startswith(why), result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_not_there() -> None:
    result = run("-f", "/no/such/file", "--cluster", "m1", "--local")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: /no/such/file: [Errno 2] No such file or directory: '/no/such/file'\n",
    )


# --- comments --------------------------------------------------------------------------------------------------------


def shown(obj: Obj, *policies: Obj) -> str:
    made = explain(Overrides.of_objects([*policies, cluster()]), obj, "m1")
    text = commented(made.applied.manifest, made.changes)
    assert load_yaml(text) == made.applied.manifest
    return text


def plain(*items: tuple[object, ...]) -> Obj:
    fields = ("operator", "path", "value")
    return rule(plaintext=[dict(zip(fields, item, strict=False)) for item in items])


def test_what_was_removed_is_reported_above_what_it_was_in() -> None:
    text = shown(config_map(a="1", b="2"), cop("c", plain(("remove", "/data/a"))))
    assert (
        "# ClusterOverridePolicy c, spec.overrideRules[0].overriders.plaintext: removed a (\"1\")\ndata:\n  b: '2'\n"
        in text
    )
    text = shown(config_map(), cop("c", plain(("remove", "/data"))))
    assert text.startswith("# ClusterOverridePolicy c, spec.overrideRules[0].overriders.plaintext: removed data ({})\n")


def test_what_was_taken_away_later_is_reported_too() -> None:
    tag = rule(imageOverrider=[{"component": "Tag", "operator": "replace", "value": "2"}])
    two = deployment(container("a"), container("b"))
    text = shown(two, cop("c", tag, plain(("remove", "/spec/template/spec/containers/0"))))
    assert text.count("changed, and removed by a later change\n") == 1
    assert text.count("removed 0 ({") == 1


def test_comments_never_break_long_or_many_lined_values() -> None:
    obj = config_map(doc="line one\nline two\n  indented\n", long="word " * 60)
    text = shown(obj, cop("c", plain(("add", "/data/doc", "new\n# not a comment\n"), ("add", "/data/x", "y " * 100))))
    assert 'was "line one\\nline two\\n' in text
    assert "…" not in text.split("was ")[0]
    text = shown(obj, cop("c", plain(("replace", "/data/long", "short"))))
    assert text.count("…") == 1


# --- with a control plane --------------------------------------------------------------------------------------------


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with running(tmp_path / "control-plane", clock=RealClock()) as plane:
        await plane.add_cluster("m1")
        yield plane


async def test_policies_of_the_control_plane_and_those_to_try_out(plane: ControlPlane, files: Path) -> None:
    async def rendered(*words: str) -> Result:
        kubeconfig = str(plane.server.kubeconfig)
        words = ("-f", f"{files}/deployment.yaml", *words, "--kubeconfig", kubeconfig)
        return await asyncio.to_thread(run, *words)

    stored = op("images", rule(labelsOverrider=[{"operator": "add", "value": {"from": "server"}}]))
    elsewhere = op("p", rule(replicasOverrider=[{"value": 9}]), namespace="kube-public")
    await plane.client.create(OverridePolicy.gvr, stored)
    await plane.client.create(OverridePolicy.gvr, elsewhere)
    await plane.client.create(ClusterOverridePolicy.gvr, cop("c", rule(replicasOverrider=[{"value": 7}])))
    result = await rendered("--cluster", "m1")
    assert result.exit_code == 0, result.output
    assert "  # ClusterOverridePolicy c, spec.overrideRules[0].overriders.replicasOverrider: was 2\n" in result.stdout
    made = load_yaml(result.stdout)
    assert (made["metadata"]["labels"], made["spec"]["replicas"]) == ({"from": "server"}, 7)
    result = await rendered("-f", f"{files}/policies.yaml", "--cluster", "m1")
    made = load_yaml(result.stdout)
    assert (made["metadata"]["labels"], made["spec"]["replicas"]) == ({"site": "one"}, 7)
    result = await rendered("--cluster", "m9")
    assert (result.exit_code, result.stderr) == (
        1,
        'Error from server (NotFound): clusters.cluster.karmada.io "m9" not found\n',
    )
    unchanged = await plane.client.get(OverridePolicy.gvr, "images", "default")
    assert unchanged["spec"]["overrideRules"] == stored["spec"]["overrideRules"]


# propagation policies

PROPAGATION = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: split}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinity: {clusterNames: [m1, m2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [m1]}, weight: 1}
        - {targetCluster: {clusterNames: [m2]}, weight: 4}
"""
SEVERAL = DEPLOYMENT.replace("replicas: 2", "replicas: 5")


@cases(("m1", 1), ("m2", 4))
def test_replicas_are_divided_as_the_policy_of_the_files_says(name: str, replicas: int) -> None:
    result = run("-f", "-", "--cluster", name, "--local", text=f"{SEVERAL}---\n{PROPAGATION}")
    assert (result.exit_code, result.stderr) == (0, "")
    [shown] = load_all(result.stdout)
    assert (shown["kind"], shown["spec"]["replicas"]) == ("Deployment", replicas)


def test_a_cluster_that_is_not_selected_gets_nothing_and_the_reason() -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    result = run("-f", "-", "--cluster", "m3", "--local", text="---\n".join([SEVERAL, config, PROPAGATION]))
    assert (result.exit_code, result.stderr) == (0, "")
    web, settings = result.stdout.split("---\n")
    assert web.startswith("# Deployment default/web: m3 is not selected: ClusterAffinity: ")
    assert settings.startswith("# ConfigMap default/settings: m3 is not selected: no policy selects ConfigMap")


async def test_policies_of_files_are_rendered_for_the_clusters_of_the_control_plane(tmp_path: Path) -> None:
    async with running(tmp_path / "plane", clock=RealClock()) as plane:
        enabled = [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]
        for name in ("m1", "m2"):
            await plane.add_cluster(name)
            found = await plane.client.get(Cluster.gvr, name)
            status = {**(found.get("status") or {}), "apiEnablements": enabled}
            await plane.client.update(Cluster.gvr, {**found, "status": status}, subresource="status")
        files = tmp_path / "all.yaml"
        files.write_text(f"{SEVERAL}---\n{PROPAGATION}")
        words = ["-f", str(files), "--cluster", "m2", "--kubeconfig", str(plane.server.kubeconfig)]
        result = await asyncio.to_thread(run, *words)
        assert (result.exit_code, result.stderr) == (0, "")
        [shown] = load_all(result.stdout)
        assert (shown["kind"], shown["spec"]["replicas"]) == ("Deployment", 4)

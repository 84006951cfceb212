"""promote, apply with clusters, and interpret with a server: a control plane and a simulated member, both real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from karmada.api.config import ResourceInterpreterCustomization
from karmada.api.policy import ClusterPropagationPolicy, PropagationPolicy
from karmada.api.well_known import generated_policy_name
from karmada.cli.changing.promoting import tidied
from karmada.cli.commands.apply import apply
from karmada.cli.commands.interpret import interpret
from karmada.cli.commands.promote import promote
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.objects.gvrs import CLUSTER_ROLES, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from tests.support.background import Background
from tests.support.cases import cases
from tests.support.karmadactl import said
from tests.support.kubectl_plane import plane as serving_plane
from tests.support.objects import kube_object

CONFIG_MAPS, SECRETS, NAMESPACES = (GVR("", "v1", name) for name in ("configmaps", "secrets", "namespaces"))
POLICIES, CLUSTER_POLICIES = PropagationPolicy.gvr, ClusterPropagationPolicy.gvr


class World:
    def __init__(self, background: Background, folder: Path) -> None:
        self._background = background
        self.plane = serving_plane(background, folder, "kubectl")
        self.member_kubeconfig = self.plane.join("member1").kubeconfig
        self.here = self.plane.server.client()
        self.there = background.enter(_client(self.member_kubeconfig))
        self._count = 0

    def namespace(self) -> str:
        """A new one, in both."""
        self._count += 1
        name = f"shop{self._count}"
        for client in (self.here, self.there):
            self.do(client.create(NAMESPACES, kube_object("v1", "Namespace", name)))
        return name

    def do(self, work: Any) -> Any:
        return self._background.run(work)

    def get(self, client: Client, gvr: GVR, name: str, namespace: str = "") -> Obj | None:
        try:
            found: Obj = self.do(client.get(gvr, name, namespace))
        except NotFound:
            return None
        return found

    def run(self, command: click.Command, *words: str, stdin: str = "") -> Result:
        done = CliRunner().invoke(command, [*words, "--kubeconfig", str(self.plane.server.kubeconfig)], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        return done


def _client(kubeconfig: Path) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def connected() -> Any:
        client = Client(HttpTransport(load_config(kubeconfig)))
        try:
            yield client
        finally:
            await client.close()

    return connected()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Background() as background:
        yield World(background, tmp_path_factory.mktemp("promote"))


def web(namespace: str, **pod: Any) -> Obj:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a", "image": "b"}], **pod}}
    return kube_object("apps/v1", "Deployment", "web", namespace, finalizers=["example.com/x"]) | {
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    }


def config(name: str, namespace: str, **labels: str) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "labels": labels}, "data": {"a": "b"}}


def with_configs(*names: str) -> Obj:
    return {"volumes": [{"name": name, "configMap": {"name": name}} for name in names]}


# promote


def test_promote_brings_a_resource_and_a_policy(world: World) -> None:
    namespace = world.namespace()
    world.do(world.there.create(DEPLOYMENTS, web(namespace)))
    name = generated_policy_name(namespace, "web", GVK("apps", "v1", "Deployment"))
    assert said(world.run(promote, "deployment", "web", "-n", namespace, "-C", "member1")) == (
        0,
        f"ResourceTemplate ({namespace}/web) is created successfully\n"
        f"PropagationPolicy ({namespace}/{name}) is created successfully\n"
        f'Resource "apps/v1, Resource=deployments"({namespace}/web) is promoted successfully\n',
        "",
    )
    template = world.get(world.here, DEPLOYMENTS, "web", namespace)
    assert template is not None
    assert template["metadata"]["annotations"] == {"work.karmada.io/conflict-resolution": "overwrite"}
    assert "finalizers" not in template["metadata"]
    policy = world.get(world.here, POLICIES, name, namespace)
    assert policy is not None
    spec = policy["spec"]
    assert spec["resourceSelectors"] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": namespace}
    ]
    assert spec["placement"]["clusterAffinity"] == {"clusterNames": ["member1"]}
    assert (spec["conflictResolution"], spec["preserveResourcesOnDeletion"]) == ("Overwrite", True)
    assert not spec.get("propagateDeps")
    result = world.run(promote, "deployment", "web", "-n", namespace, "-C", "member1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "already exist in karmada control plane" in result.stderr


def test_promote_of_a_cluster_scoped_resource_by_a_kubeconfig(world: World) -> None:
    role = kube_object("rbac.authorization.k8s.io/v1", "ClusterRole", "looks:at", rules=[])
    world.do(world.there.create(CLUSTER_ROLES, role))
    context = yaml.safe_load(world.member_kubeconfig.read_text())["current-context"]
    by_file = ["--cluster-kubeconfig", str(world.member_kubeconfig), "--cluster-context", context]
    name = generated_policy_name("", "looks:at", GVK("rbac.authorization.k8s.io", "v1", "ClusterRole"))
    assert said(world.run(promote, "clusterrole", "looks:at", "-C", "member1", *by_file)) == (
        0,
        "ResourceTemplate (looks:at) is created successfully\n"
        f"ClusterPropagationPolicy {name} is created successfully\n"
        'Resource "rbac.authorization.k8s.io/v1, Resource=clusterroles"(looks:at) is promoted successfully\n',
        "",
    )
    assert name.startswith("looks.at-")
    assert world.get(world.here, CLUSTER_POLICIES, name) is not None


def test_promote_shows_what_it_would_create(world: World) -> None:
    namespace = world.namespace()
    world.do(world.there.create(DEPLOYMENTS, web(namespace)))
    result = world.run(
        promote, "deploy", "web", "-n", namespace, "-C", "member1", "-o", "yaml", "-d", "--policy-name", "p"
    )
    template, policy = yaml.safe_load_all(result.stdout)
    assert (template["kind"], template["metadata"]["name"], "status" in template) == ("Deployment", "web", False)
    assert (policy["kind"], policy["metadata"]["name"], policy["spec"]["propagateDeps"]) == (
        "PropagationPolicy",
        "p",
        True,
    )
    assert said(world.run(promote, "deploy", "web", "-n", namespace, "-C", "member1", "--dry-run", "-d")) == (0, "", "")
    assert world.get(world.here, DEPLOYMENTS, "web", namespace) is None


def test_promote_with_dependencies(world: World) -> None:
    namespace = world.namespace()
    for name in ("one", "two"):
        world.do(world.there.create(CONFIG_MAPS, config(name, namespace)))
    world.do(world.there.create(DEPLOYMENTS, web(namespace, **with_configs("one", "two"))))
    result = world.run(promote, "deployment", "web", "-n", namespace, "-C", "member1", "-d", "--policy-name", "mine")
    assert result.stdout.splitlines() == [
        "use default interpreter",
        f'Dependency resource "/v1, Resource=configmaps"({namespace}/one) is promoted successfully',
        f'Dependency resource "/v1, Resource=configmaps"({namespace}/two) is promoted successfully',
        f"ResourceTemplate ({namespace}/web) is created successfully",
        f"PropagationPolicy ({namespace}/mine) is created successfully",
        f'Resource "apps/v1, Resource=deployments"({namespace}/web) is promoted successfully',
    ]
    policies = world.do(world.here.list_all(POLICIES, namespace)).items
    assert [policy["spec"]["propagateDeps"] for policy in policies] == [True]
    assert world.get(world.here, CONFIG_MAPS, "one", namespace) is not None


def test_a_dependency_that_is_missing_undoes_the_others(world: World) -> None:
    namespace = world.namespace()
    world.do(
        world.there.create(CONFIG_MAPS, config("one", namespace, **{"karmada.io/managed": "true", "mine": "stays"}))
    )
    world.do(world.there.create(DEPLOYMENTS, web(namespace, **with_configs("one", "gone"))))
    result = world.run(promote, "deployment", "web", "-n", namespace, "-C", "member1", "-d")
    assert result.exit_code == 1
    assert (
        result.stdout.splitlines()[-1] == f'Dependency resource "/v1, Resource=configmaps"({namespace}/one) is reverted'
    )
    assert result.stderr == 'Error from server (NotFound): configmaps "gone" not found\n'
    assert world.get(world.here, CONFIG_MAPS, "one", namespace) is None
    assert world.get(world.here, DEPLOYMENTS, "web", namespace) is None
    left = world.get(world.there, CONFIG_MAPS, "one", namespace)
    assert left is not None
    assert left["metadata"]["labels"] == {"mine": "stays"}


def test_a_dependency_that_is_there_already_ends_the_promotion_of_dependencies_only(world: World) -> None:
    namespace = world.namespace()
    for name in ("one", "two"):
        world.do(world.there.create(CONFIG_MAPS, config(name, namespace)))
    world.do(world.here.create(CONFIG_MAPS, config("two", namespace)))
    world.do(world.there.create(DEPLOYMENTS, web(namespace, **with_configs("one", "two"))))
    result = world.run(promote, "deployment", "web", "-n", namespace, "-C", "member1", "-d")
    assert result.exit_code == 0, result.stderr
    assert world.get(world.here, CONFIG_MAPS, "one", namespace) is None
    assert world.get(world.here, DEPLOYMENTS, "web", namespace) is not None


def test_customizations_report_what_a_resource_depends_on(world: World) -> None:
    namespace = world.namespace()
    script = (
        "function GetDependencies(o)\n  return {{apiVersion='v1', kind='ConfigMap', namespace=o.metadata.namespace, "
        "name=o.metadata.annotations.needs}}\nend\n"
    )
    world.do(
        world.here.create(
            ResourceInterpreterCustomization.gvr,
            {
                "apiVersion": "config.karmada.io/v1alpha1",
                "kind": "ResourceInterpreterCustomization",
                "metadata": {"name": "needs"},
                "spec": {
                    "target": {"apiVersion": "v1", "kind": "Secret"},
                    "customizations": {"dependencyInterpretation": {"luaScript": script}},
                },
            },
        )
    )
    world.do(world.there.create(CONFIG_MAPS, config("needed", namespace)))
    secret = kube_object("v1", "Secret", "s", namespace)
    secret["metadata"] |= {"annotations": {"needs": "needed"}}
    world.do(world.there.create(SECRETS, secret))
    result = world.run(promote, "secret", "s", "-n", namespace, "-C", "member1", "-d")
    assert result.stdout.splitlines()[:2] == [
        "use configurable interpreter",
        f'Dependency resource "/v1, Resource=configmaps"({namespace}/needed) is promoted successfully',
    ]
    listed = world.run(interpret, "needs", "--check")
    assert (listed.exit_code, listed.stdout.splitlines()[1]) == (0, "SOURCE: needs")


def test_a_customization_of_the_server_is_edited(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gvr = ResourceInterpreterCustomization.gvr
    before = "function InterpretHealth(o)\n  return true\nend\n"
    obj = kube_object("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization", "edited") | {
        "spec": {
            "target": {"apiVersion": "v1", "kind": "Node"},
            "customizations": {"healthInterpretation": {"luaScript": before}},
        },
    }
    world.do(world.here.create(gvr, obj))
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/return true/return false/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = world.run(interpret, "edited", "--edit")
    assert said(result) == (0, "resourceinterpretercustomization.config.karmada.io/edited edited\n", "")
    changed = world.get(world.here, gvr, "edited")
    assert changed is not None
    script = changed["spec"]["customizations"]["healthInterpretation"]["luaScript"]
    assert script == before.replace("true", "false")
    editor.write_text('#!/bin/sh\nsed -i "s/^---@kind:.*/---@kind: Pod/" "$1"\n')
    refused = world.run(interpret, "edited", "--edit")
    assert refused.exit_code == 1
    assert "name, apiVersion and kind of a customization on the server cannot be changed" in refused.stderr
    [kept] = tmp_path.glob("karmadactl-edit-*.lua")
    assert f'A copy of your changes has been stored to "{kept}"' in refused.stderr


def test_a_kind_nobody_knows_is_promoted_without_dependencies(world: World) -> None:
    namespace = world.namespace()
    world.do(world.there.create(CONFIG_MAPS, config("plain", namespace)))
    result = world.run(promote, "cm", "plain", "-n", namespace, "-C", "member1", "-d", "--auto-create-policy")
    assert result.exit_code == 0
    assert "no interpreter knows what a ConfigMap of v1 depends on" in result.stderr


def test_a_policy_that_is_there_already_is_an_error(world: World) -> None:
    namespace = world.namespace()
    for name in ("one", "two"):
        world.do(world.there.create(CONFIG_MAPS, config(name, namespace)))
    assert world.run(promote, "cm", "one", "-n", namespace, "-C", "member1", "--policy-name", "p").exit_code == 0
    result = world.run(promote, "cm", "two", "-n", namespace, "-C", "member1", "--policy-name", "p")
    assert result.exit_code == 1
    assert (
        result.stderr
        == f"error: the PropagationPolicy ({namespace}/p) already exist, please edit it to propagate resource\n"
    )


@cases(
    (
        ["deployment", "none", "-C", "member1"],
        "error: failed to get resource in cluster(member1). "
        "err: the deployment or none don't exist in cluster(member1)",
    ),
    (["deployment", "none"], "error: the cluster cannot be empty"),
    (["deployment", "-C", "member1"], "error: incorrect command format, please use correct command format"),
    (
        ["deployment", "x", "-C", "nine"],
        'Error from server (NotFound): clusters.cluster.karmada.io "nine" not found',
    ),
    (
        ["things", "x", "-C", "member1"],
        'error: failed to get resource in cluster(member1). err: the server doesn\'t have a resource type "things"',
    ),
    (
        ["deployment", "x", "-C", "member1", "-o", "wide"],
        "error: unable to match a printer suitable for the output format",
    ),
)
def test_promotions_that_cannot_be(words: list[str], refusal: str, world: World) -> None:
    result = world.run(promote, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(refusal)


def test_what_belongs_to_the_cluster_alone_stays_there() -> None:
    service = kube_object(
        "v1", "Service", "s", uid="u", annotations={"work.karmada.io/conflict-resolution": "abort"}
    ) | {
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": []},
        "status": {},
    }
    assert tidied(service) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "annotations": {"work.karmada.io/conflict-resolution": "abort"}},
        "spec": {"ports": []},
    }
    job = kube_object("batch/v1", "Job", "j", spec={"ttlSecondsAfterFinished": 5})
    assert tidied(job)["spec"] == {"ttlSecondsAfterFinished": 5}


# apply


def test_apply_to_clusters_puts_a_policy_behind_every_object(world: World) -> None:
    namespace = world.namespace()
    manifest = yaml.safe_dump_all([
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": namespace}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-more"}},
    ])  # fmt: skip
    one = generated_policy_name(namespace, "one", GVK("", "v1", "ConfigMap"))
    more = generated_policy_name("", f"{namespace}-more", GVK("", "v1", "Namespace"))
    lines = [
        "configmap/one",
        f"propagationpolicy.policy.karmada.io/{one}",
        f"namespace/{namespace}-more",
        f"clusterpropagationpolicy.policy.karmada.io/{more}",
    ]
    words = ["-f", "-", "-C", "member1", "-n", namespace]
    result = world.run(apply, *words, stdin=manifest)
    assert result.stdout.splitlines() == [f"{line} created" for line in lines], result.stderr
    policy = world.get(world.here, POLICIES, one, namespace)
    assert policy is not None
    assert policy["spec"]["placement"]["clusterAffinity"] == {"clusterNames": ["member1"]}
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "namespace": namespace}
    assert policy["spec"]["resourceSelectors"] == [selector]
    again = world.run(apply, *words, stdin=manifest)
    assert again.stdout.splitlines() == [f"{line} unchanged" for line in lines]
    everywhere = world.run(apply, "-f", "-", "--all-clusters", "-n", namespace, stdin=manifest)
    assert everywhere.stdout.splitlines() == [
        f"{line} {'configured' if 'policy' in line else 'unchanged'}" for line in lines
    ]


@cases(
    (["-C", "member1", "--all-clusters"], "error: --all-clusters and --cluster cannot be used together\n"),
    (["-C", "nine"], "error: cluster nine does not exist\n"),
    (["-C", "nine,member1", "-C", "ten"], "cluster nine does not exist\ncluster ten does not exist\n"),
)
def test_clusters_that_cannot_be(words: list[str], refusal: str, world: World) -> None:
    result = world.run(apply, "-f", "-", *words, stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: never}\n")
    assert said(result) == (1, "", refusal)
    assert world.get(world.here, CONFIG_MAPS, "never", "default") is None

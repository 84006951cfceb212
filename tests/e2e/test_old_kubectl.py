"""A kubectl of 2021 (1.20): legacy discovery, Swagger as protobuf, client-side validation.

It comes from Debian's kubernetes-client package, unpacked into a directory of its own; nothing on PATH changes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., Result]
CACHE = Path(tempfile.gettempdir()) / "pykarmada-old-kubectl"

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "nginx:1.19", ports: [{containerPort: 80}]}
      - {name: side, image: "envoy:1"}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shirts.old.example.com}
spec:
  group: old.example.com
  scope: Namespaced
  names: {plural: shirts, kind: Shirt, shortNames: [sh]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour}]
    schema:
      openAPIV3Schema:
        type: object
        description: Something to wear.
        properties:
          spec:
            type: object
            properties:
              colour: {type: string, nullable: true, description: What it looks like.}
              size: {x-kubernetes-int-or-string: true}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
              tags: {type: array, items: {type: string}}
"""
SHIRT = """
apiVersion: old.example.com/v1
kind: Shirt
metadata: {name: mine}
spec:
  colour: null
  size: 42
  extra: {a: b, unknown: {deep: true}}
  tags: [a, b]
"""


def fetch(directory: Path) -> Path:
    """The package's kubectl; fails with what to do if it cannot be had."""
    kubectl = directory / "unpacked" / "usr" / "bin" / "kubectl"
    if kubectl.exists():
        return kubectl
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            pytest.fail(f"{tool} is needed to fetch Debian's kubernetes-client (kubectl 1.20); run this on Debian")
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["apt-get", "download", "kubernetes-client"], cwd=directory, capture_output=True, text=True, check=False
    )
    packages = sorted(directory.glob("kubernetes-client_*.deb"))
    if done.returncode != 0 or not packages:
        pytest.fail(f"apt-get download kubernetes-client failed (no network, or apt-get update needed):\n{done.stderr}")
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        subprocess.run(["dpkg", "-x", str(packages[-1]), scratch], check=True)
        (Path(scratch) / "usr").rename(_made(directory / "unpacked") / "usr")
    return kubectl


def _made(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return directory


@pytest.fixture(scope="module")
def old(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Program:
    program = Program([str(fetch(CACHE))], tmp_path_factory.mktemp("old-home"), server.kubeconfig)
    version = program("version", "--client", "-o", "json").json()["clientVersion"]
    minor = int(re.sub(r"\D", "", version["minor"]))
    assert (version["major"], minor <= 26) == ("1", True), f"this is not an old kubectl: {version}"
    return program


@pytest.fixture
def namespace(old: Program) -> Iterator[str]:
    """Made by the old kubectl itself."""
    name = f"old-{uuid.uuid4().hex[:8]}"
    old("create", "namespace", name)
    yield name
    old("delete", "namespace", name, "--wait=false")


@pytest.fixture
def on(old: Program, namespace: str) -> Kubectl:
    def run(*arguments: str, **kwargs: Any) -> Result:
        return old("-n", namespace, *arguments, **kwargs)

    return run


def test_it_discovers_by_the_legacy_documents(old: Program) -> None:
    version = old("version", "-o", "json").json()["serverVersion"]
    assert version["gitVersion"].startswith("v1.")
    resources = old("api-resources", "-o", "wide").out
    assert re.search(r"^deployments +deploy +apps/v1 +true +Deployment +\[create", resources, re.MULTILINE)
    assert "autoscaling/v2\n" in old("api-versions").out
    requested = old("get", "hpa", "-v", "6", check=False).err
    assert re.search(r"GET https://\S+/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", requested)


def test_get_prints_tables_and_every_other_form(on: Kubectl) -> None:
    on("apply", "-f", "-", stdin=WEB)
    assert on("get", "deploy").lines[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert on("get", "deploy", "web", "--no-headers").out.split()[:2] == ["web", "0/2"]
    assert on("get", "deploy", "-o", "wide").lines[1].split()[5] == "main,side"
    assert on("get", "deploy", "web", "-o", "json").json()["spec"]["replicas"] == 2
    assert yaml.safe_load(on("get", "deploy", "web", "-o", "yaml").out)["kind"] == "Deployment"
    assert "deployment.apps/web" in on("get", "all", "-o", "name").lines
    assert "nginx:1.19" in on("describe", "deploy", "web").out
    missing = on("get", "deploy", "none", check=False)
    assert missing.err.strip() == 'Error from server (NotFound): deployments.apps "none" not found'


def test_apply_validates_against_swagger_and_merges_three_ways(on: Kubectl) -> None:
    assert on("apply", "-f", "-", stdin=WEB).out.strip() == "deployment.apps/web created"
    assert on("apply", "-f", "-", stdin=WEB).out.strip() == "deployment.apps/web unchanged"
    on("scale", "deploy", "web", "--replicas=7")
    changed = WEB.replace("nginx:1.19", "nginx:1.20").replace("  replicas: 2\n", "")
    on("set", "env", "deploy/web", "-c", "side", "COLOUR=red")
    assert on("apply", "-f", "-", stdin=changed).out.strip() == "deployment.apps/web configured"
    spec = on("get", "deploy", "web", "-o", "json").json()["spec"]
    containers = {c["name"]: c for c in spec["template"]["spec"]["containers"]}
    assert containers["main"]["image"] == "nginx:1.20"
    assert containers["side"]["env"] == [{"name": "COLOUR", "value": "red"}]
    wrong = on("apply", "-f", "-", stdin=WEB.replace("replicas: 2", "replica: 2"), check=False)
    assert 'unknown field "replica" in io.k8s.api.apps.v1.DeploymentSpec' in wrong.err
    text = on("apply", "-f", "-", stdin=WEB.replace("replicas: 2", 'replicas: "two"'), check=False)
    assert 'invalid type for io.k8s.api.apps.v1.DeploymentSpec.replicas: got "string", expected "integer"' in text.err


def test_server_side_apply(on: Kubectl) -> None:
    assert on("apply", "--server-side", "-f", "-", stdin=WEB).out.strip() == "deployment.apps/web serverside-applied"
    managers = [m["manager"] for m in on("get", "deploy", "web", "-o", "json").json()["metadata"]["managedFields"]]
    assert "kubectl" in managers
    on("scale", "deploy", "web", "--replicas=9")
    conflict = on("apply", "--server-side", "-f", "-", stdin=WEB, check=False)
    assert "Apply failed with 1 conflict" in conflict.err
    on("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=WEB)
    assert on("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}").out == "2"


def test_create_with_its_generators_and_from_files(on: Kubectl) -> None:
    on("create", "deployment", "made", "--image=nginx")
    on("create", "configmap", "settings", "--from-literal=a=b")
    on("create", "secret", "generic", "password", "--from-literal=p=sesame")
    on("create", "service", "clusterip", "web", "--tcp=80:8080")
    on("create", "serviceaccount", "robot")
    on("create", "role", "reader", "--verb=get", "--resource=pods")
    on("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot")
    on("create", "ingress", "door", "--rule=example.com/*=web:80")
    on("create", "job", "once", "--image=busybox")
    on("expose", "deployment", "made", "--port=80")
    on("autoscale", "deployment", "made", "--min=1", "--max=3", "--cpu-percent=80")
    on("run", "lonely", "--image=busybox", "--restart=Never", "--overrides", '{"spec":{"serviceAccountName":"robot"}}')
    on("create", "quota", "limits", "--hard=pods=10")
    assert on("get", "cm", "settings", "-o", "jsonpath={.data.a}").out == "b"
    assert on("get", "hpa", "made", "-o", "jsonpath={.spec.maxReplicas}").out == "3"
    assert on("get", "ingress", "door", "-o", "jsonpath={.spec.rules[0].host}").out == "example.com"
    again = on("create", "configmap", "settings", check=False)
    assert again.err.strip() == 'Error from server (AlreadyExists): configmaps "settings" already exists'
    invalid = on("create", "-f", "-", stdin=WEB.replace("replicas: 2", "replicas: -1"), check=False)
    assert 'The Deployment "web" is invalid: spec.replicas: Invalid value: -1' in invalid.err


def test_explain_reads_the_swagger_document(old: Program) -> None:
    text = old("explain", "deployment.spec.template.spec.containers.ports").out
    assert "RESOURCE: ports <[]Object>" in text
    assert "containerPort" in text
    assert "VERSION:  autoscaling/v2" in old("explain", "hpa").out
    recursive = old("explain", "pod", "--recursive").out
    assert "requiredDuringSchedulingIgnoredDuringExecution" in recursive
    assert "VERSION:  autoscaling/v1" in old("explain", "hpa", "--api-version=autoscaling/v1").out


def test_patch_in_every_form_and_edit(
    old: Program, on: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on("apply", "-f", "-", stdin=WEB)
    strategic = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "envoy:2"}]}}}}
    on("patch", "deploy", "web", "-p", json.dumps(strategic))
    on("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"labels":{"tier":"front"}}}')
    on("patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":3}]')
    on("label", "deploy", "web", "colour=red")
    on("annotate", "deploy", "web", "note=hello")
    on("set", "image", "deploy/web", "main=nginx:1.21")
    shown = on("get", "deploy", "web", "-o", "json").json()
    images = [c["image"] for c in shown["spec"]["template"]["spec"]["containers"]]
    assert images == ["nginx:1.21", "envoy:2"]
    assert shown["spec"]["replicas"] == 3
    assert shown["metadata"]["labels"] == {"app": "web", "tier": "front", "colour": "red"}
    assert shown["metadata"]["annotations"]["note"] == "hello"
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/replicas: 3/replicas: 4/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setitem(old.env, "KUBE_EDITOR", str(editor))
    assert on("edit", "deploy", "web").out.strip() == "deployment.apps/web edited"
    assert on("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}").out == "4"
    on("replace", "-f", "-", stdin=WEB)
    assert on("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}").out == "2"


def test_delete_waits_until_the_object_is_gone(on: Kubectl) -> None:
    on("apply", "-f", "-", stdin=WEB)
    assert on("delete", "deploy", "web").out.strip() == 'deployment.apps "web" deleted'
    assert on("get", "deploy", "-o", "name").out == ""
    for name in ("a", "b"):
        on("create", "configmap", name)
        on("label", "configmap", name, "mine=yes")
    on("delete", "configmap", "-l", "mine")
    assert on("get", "configmap", "-l", "mine", "-o", "name").out == ""
    assert on("delete", "deploy", "none", "--ignore-not-found").out == ""


def test_a_watch_prints_what_changes(old: Program, on: Kubectl, namespace: str) -> None:
    on("create", "configmap", "seen")
    watch = old.start("-n", namespace, "get", "cm", "seen", "-w", "--no-headers")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split()[:2] == ["seen", "0"]
        on("patch", "cm", "seen", "-p", '{"data":{"a":"b"}}')
        assert watch.stdout.readline().split()[:2] == ["seen", "1"]
    finally:
        watch.kill()
        watch.wait()


def test_custom_resources_pass_its_validation(old: Program, on: Kubectl) -> None:
    old("apply", "-f", "-", stdin=CRD)
    try:
        old("wait", "--for=condition=Established", "crd/shirts.old.example.com", "--timeout=100s")
        eventually_blocking(
            lambda: on("apply", "-f", "-", stdin=SHIRT).out.strip() == "shirt.old.example.com/mine created"
        )
        assert on("get", "sh").lines[0].split() == ["NAME", "COLOUR"]
        spec = on("get", "shirt", "mine", "-o", "json").json()["spec"]
        assert spec["extra"] == {"a": "b", "unknown": {"deep": True}}
        changed = SHIRT.replace("null", "red").replace("42", "XL")
        assert on("apply", "-f", "-", stdin=changed).out.strip() == "shirt.old.example.com/mine configured"
        assert on("get", "sh").lines[1].split() == ["mine", "red"]
        wrong = on("apply", "-f", "-", stdin=SHIRT.replace("tags:", "tag:"), check=False)
        assert 'unknown field "tag" in com.example.old.v1.Shirt.spec' in wrong.err
        explained = old("explain", "shirt.spec").out
        assert "What it looks like." in explained
        assert "Something to wear." in old("explain", "shirt").out
    finally:
        old("delete", "crd", "shirts.old.example.com")

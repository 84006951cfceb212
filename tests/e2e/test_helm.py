"""helm 3 against the server: a chart's whole life, with hooks, custom resources, failures and rollbacks."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., Result]

CHART = {
    "Chart.yaml": """
apiVersion: v2
name: web
version: 1.2.3
appVersion: "9.8"
""",
    "values.yaml": """
replicas: 2
image: nginx:1.27
colour: red
serviceType: ClusterIP
paused: false
hookJob: false
""",
    "crds/gadget.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.helm.example.com
spec:
  group: helm.example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
              parts: {type: array, items: {type: string}}
""",
    "templates/deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app: {{ .Release.Name }}, colour: {{ .Values.colour }}}
spec:
  replicas: {{ .Values.replicas }}
  paused: {{ .Values.paused }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: web
        image: {{ .Values.image }}
        env:
        - {name: COLOUR, value: {{ .Values.colour }}}
        ports: [{containerPort: 80, name: http}]
""",
    "templates/service.yaml": """
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec:
  type: {{ .Values.serviceType }}
  selector: {app: {{ .Release.Name }}}
  ports: [{name: http, port: 80, targetPort: http}]
""",
    "templates/config.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  colour: {{ .Values.colour }}
  {{- if eq .Values.colour "red" }}
  only-red: "yes"
  {{- end }}
  seen: {{ (lookup "v1" "Namespace" "" "kube-system").metadata.name | default "nothing" }}
  version: {{ .Capabilities.KubeVersion.Version }}
  knows-deployments: "{{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}"
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {password: "{{ .Values.colour }}-secret"}
""",
    "templates/gadget.yaml": """
apiVersion: helm.example.com/v1
kind: Gadget
metadata: {name: {{ .Release.Name }}}
spec:
  size: {{ max 1 (int .Values.replicas) }}
  parts: [a, {{ .Values.colour }}]
""",
    "templates/hooks.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-before
  annotations:
    helm.sh/hook: pre-install
    helm.sh/hook-delete-policy: before-hook-creation
data: {when: pre-install}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-fleeting
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: hook-succeeded
data: {when: any}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-after
  annotations:
    helm.sh/hook: post-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
data: {colour: {{ .Values.colour }}}
{{- if .Values.hookJob }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations:
    helm.sh/hook: post-upgrade
    helm.sh/hook-weight: "5"
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: busybox}]
{{- end }}
""",
    "templates/NOTES.txt": "{{ .Release.Name }} is {{ .Values.colour }}.\n",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    root = tmp_path / "web"
    for name, text in CHART.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"))
    return root


@pytest.fixture(scope="session")
def helm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("helm-home")


@pytest.fixture
def helm(server: ServerProcess, helm_home: Path, namespace: str) -> Callable[..., Result]:
    """helm in this test's namespace, with a home of its own."""
    binary = Path(sys.executable).with_name("helm")
    if not binary.exists():
        pytest.fail("the package helm-binary is not installed")
    program = Program([str(binary)], helm_home, server.kubeconfig)
    for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "XDG_CACHE_HOME"):
        program.env[name] = str(helm_home / name.lower())

    def run(*arguments: str, **kwargs: Any) -> Result:
        return program("-n", namespace, *arguments, **kwargs)

    return run


def get(kn: Kubectl, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = kn("get", *what, "-o", "json").json()
    return found


def releases(helm: Callable[..., Result], *arguments: str) -> dict[str, tuple[str, str]]:
    """Name → (revision, status)."""
    listed = helm("list", "-o", "json", *arguments).json()
    return {release["name"]: (release["revision"], release["status"]) for release in listed}


def test_install_makes_everything_of_the_chart(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    said = helm("install", "shop", str(chart)).out
    assert "STATUS: deployed" in said
    assert "shop is red." in said
    assert get(kn, "deployment", "shop")["spec"]["replicas"] == 2
    assert get(kn, "gadget", "shop")["spec"] == {"size": 2, "parts": ["a", "red"]}
    secret = get(kn, "secret", "shop")["data"]["password"]
    assert base64.b64decode(secret) == b"red-secret"
    data = get(kn, "configmap", "shop")["data"]
    assert data["seen"] == "kube-system"
    assert data["version"].startswith("v1.")
    assert data["knows-deployments"] == "true"
    labels = get(kn, "service", "shop")["metadata"]["labels"]
    assert labels == {"app.kubernetes.io/managed-by": "Helm"}
    assert get(kn, "configmap", "shop-before")["data"] == {"when": "pre-install"}
    assert kn("get", "configmap", "shop-fleeting", check=False).code == 1
    assert releases(helm) == {"shop": ("1", "deployed")}


def test_status_manifest_values_and_notes_are_kept(helm: Callable[..., Result], chart: Path) -> None:
    helm("install", "shop", str(chart), "--set", "colour=green")
    status = helm("status", "shop", "-o", "json").json()
    assert status["info"]["status"] == "deployed"
    manifest = list(yaml.safe_load_all(helm("get", "manifest", "shop").out))
    assert sorted(part["kind"] for part in manifest) == ["ConfigMap", "Deployment", "Gadget", "Secret", "Service"]
    assert helm("get", "values", "shop", "-o", "json").json() == {"colour": "green"}
    assert helm("get", "values", "shop", "--all", "-o", "json").json()["replicas"] == 2
    assert "shop is green." in helm("get", "notes", "shop").out
    assert "pre-install" in helm("get", "hooks", "shop").out


def test_the_release_lies_in_a_secret_of_its_type(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    helm("install", "shop", str(chart))
    [secret] = get(kn, "secrets", "-l", "owner=helm,name=shop,status=deployed")["items"]
    assert secret["metadata"]["name"] == "sh.helm.release.v1.shop.v1"
    assert secret["type"] == "helm.sh/release.v1"
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    assert release["chart"]["metadata"]["version"] == "1.2.3"
    assert kn("get", "secrets", "--field-selector=type=helm.sh/release.v1", "--no-headers").lines


def test_upgrade_changes_and_rollback_changes_back(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    helm("install", "shop", str(chart))
    address = get(kn, "service", "shop")["spec"]["clusterIP"]
    kn("label", "deployment", "shop", "by-hand=yes")
    helm("upgrade", "shop", str(chart), "--set", "colour=blue,replicas=3,image=nginx:1.28,serviceType=NodePort")
    deployment = get(kn, "deployment", "shop")
    assert deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == ("nginx:1.28", [{"name": "COLOUR", "value": "blue"}])
    assert deployment["metadata"]["labels"]["by-hand"] == "yes"
    assert "only-red" not in get(kn, "configmap", "shop")["data"]
    assert get(kn, "gadget", "shop")["spec"] == {"size": 3, "parts": ["a", "blue"]}
    assert get(kn, "configmap", "shop-after")["data"] == {"colour": "blue"}
    service = get(kn, "service", "shop")["spec"]
    assert service["clusterIP"] == address
    assert service["ports"][0]["nodePort"]
    assert "Rollback was a success" in helm("rollback", "shop", "1").out
    assert get(kn, "deployment", "shop")["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
    assert get(kn, "configmap", "shop")["data"]["only-red"] == "yes"
    assert get(kn, "gadget", "shop")["spec"]["parts"] == ["a", "red"]
    history = helm("history", "shop", "-o", "json").json()
    assert [(entry["revision"], entry["status"]) for entry in history] == [
        (1, "superseded"), (2, "superseded"), (3, "deployed"),
    ]  # fmt: skip
    assert history[2]["description"] == "Rollback to 1"


def test_upgrade_removes_what_the_chart_dropped(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    helm("install", "shop", str(chart))
    (chart / "templates/service.yaml").unlink()
    helm("upgrade", "shop", str(chart))
    eventually_blocking(lambda: kn("get", "service", "shop", check=False).code == 1)
    assert get(kn, "deployment", "shop")


def test_uninstall_removes_the_release_and_keeps_definitions(
    helm: Callable[..., Result], kn: Kubectl, chart: Path
) -> None:
    helm("install", "shop", str(chart))
    assert 'release "shop" uninstalled' in helm("uninstall", "shop", "--wait", "--timeout", "20s").out
    for kind in ("deployment", "service", "gadget", "secret"):
        assert kn("get", kind, "shop", check=False).code == 1
    assert releases(helm, "--all") == {}
    assert kn("get", "crd", "gadgets.helm.example.com").code == 0
    assert kn("get", "secrets", "-l", "owner=helm", "-o", "name").out == ""


def test_uninstall_can_keep_the_history(helm: Callable[..., Result], chart: Path) -> None:
    helm("install", "shop", str(chart))
    helm("uninstall", "shop", "--keep-history")
    assert releases(helm, "--uninstalled") == {"shop": ("1", "uninstalled")}


def test_a_dry_run_on_the_server_looks_things_up_and_leaves_nothing(
    helm: Callable[..., Result], kn: Kubectl, chart: Path
) -> None:
    said = helm("install", "shop", str(chart), "--dry-run=server").out
    assert "seen: kube-system" in said
    assert kn("get", "deployments,configmaps", "-l", "app=shop", "-o", "name").out == ""
    assert releases(helm, "--all") == {}


def complete_job(kn: Kubectl, name: str, condition: str) -> None:
    """What a Job controller would do, if one ran here."""
    now = "2026-01-01T00:00:00Z"
    ended: dict[str, Any] = {"type": condition, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    status: dict[str, Any] = {"startTime": now, "conditions": [ended]}
    if condition == "Complete":
        criteria = {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": now}
        status |= {"succeeded": 1, "completionTime": now, "conditions": [criteria, ended]}
    else:
        target = {"type": "FailureTarget", "status": "True", "lastTransitionTime": now}
        status |= {"failed": 1, "conditions": [target, ended]}
    patch = json.dumps({"status": status})
    eventually_blocking(
        lambda: kn("patch", "job", name, "--subresource=status", "--type=merge", "-p", patch, check=False).code == 0
    )


@pytest.fixture
def jobs_end(kn: Kubectl) -> Iterator[Callable[[str, str], None]]:
    """Let a Job end, in a thread, as soon as it exists."""
    threads: list[threading.Thread] = []
    failures: list[BaseException] = []

    def work(name: str, condition: str) -> None:
        try:
            complete_job(kn, name, condition)
        except (AssertionError, subprocess.SubprocessError) as error:
            failures.append(error)

    def start(name: str, condition: str) -> None:
        threads.append(threading.Thread(target=work, args=(name, condition)))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()
    assert not failures


def test_upgrade_waits_for_its_hook_job(
    helm: Callable[..., Result], kn: Kubectl, chart: Path, jobs_end: Callable[[str, str], None]
) -> None:
    helm("install", "shop", str(chart))
    jobs_end("shop-migrate", "Complete")
    said = helm("upgrade", "shop", str(chart), "--set", "hookJob=true", "--timeout", "20s").out
    assert "STATUS: deployed" in said
    assert get(kn, "job", "shop-migrate")["status"]["succeeded"] == 1


def test_a_hook_job_that_fails_fails_the_upgrade(
    helm: Callable[..., Result], chart: Path, jobs_end: Callable[[str, str], None]
) -> None:
    helm("install", "shop", str(chart))
    jobs_end("shop-migrate", "Failed")
    done = helm("upgrade", "shop", str(chart), "--set", "hookJob=true", "--timeout", "20s", check=False)
    assert done.code == 1
    assert "post-upgrade hooks failed" in done.err
    assert releases(helm, "--all") == {"shop": ("2", "failed")}


def test_an_atomic_install_that_never_gets_ready_leaves_nothing(
    helm: Callable[..., Result], kn: Kubectl, chart: Path
) -> None:
    done = helm("install", "shop", str(chart), "--atomic", "--timeout", "2s", check=False)
    assert done.code == 1
    assert "release shop failed, and has been uninstalled due to atomic being set" in done.err
    assert kn("get", "deployment", "shop", check=False).code == 1
    assert releases(helm, "--all") == {}


def test_an_atomic_upgrade_that_is_refused_goes_back(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    """A paused Deployment counts as ready, so the way back does not wait for a controller that does not run here."""
    helm("install", "shop", str(chart), "--set", "paused=true")
    changes = ["--set", "paused=true,colour=blue,replicas=-1"]
    done = helm("upgrade", "shop", str(chart), "--atomic", "--timeout", "5s", *changes, check=False)
    assert done.code == 1
    assert "rolled back due to atomic being set" in done.err
    assert "spec.replicas: Invalid value: -1: must be greater than or equal to 0" in done.err
    assert get(kn, "deployment", "shop")["spec"]["replicas"] == 2
    assert get(kn, "configmap", "shop")["data"]["colour"] == "red"
    assert releases(helm, "--all") == {"shop": ("3", "deployed")}


def test_install_warns_of_fields_the_schema_does_not_know(
    helm: Callable[..., Result], kn: Kubectl, chart: Path
) -> None:
    path = chart / "templates/service.yaml"
    path.write_text(path.read_text().replace("selector:", "selectr:"))
    assert 'unknown field "spec.selectr"' in helm("install", "shop", str(chart)).err
    assert "selectr" not in get(kn, "service", "shop")["spec"]


def test_install_fails_on_a_kind_that_is_not_served(helm: Callable[..., Result], chart: Path) -> None:
    path = chart / "templates/service.yaml"
    path.write_text(path.read_text().replace("kind: Service", "kind: Servce"))
    done = helm("install", "shop", str(chart), check=False)
    assert done.code == 1
    assert 'no matches for kind "Servce" in version "v1"' in done.err
    assert releases(helm, "--all") == {}


def test_install_takes_over_nothing_that_belongs_to_somebody_else(
    helm: Callable[..., Result], kn: Kubectl, chart: Path
) -> None:
    kn("create", "configmap", "shop")
    done = helm("install", "shop", str(chart), check=False)
    assert done.code == 1
    assert "invalid ownership metadata" in done.err
    assert "--take-ownership" in helm("install", "--help").out
    assert helm("install", "shop", str(chart), "--take-ownership").code == 0


def test_wait_sees_a_deployment_get_ready(helm: Callable[..., Result], kn: Kubectl, chart: Path) -> None:
    """Nobody runs Deployments here, so the test says that this one is ready, as a controller would."""

    def ready() -> bool:
        patch = {"status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
                            "availableReplicas": 2}}  # fmt: skip
        return kn("patch", "deployment", "shop", "--subresource=status", "--type=merge", "-p", json.dumps(patch),
                  check=False).code == 0  # fmt: skip

    def replica_set() -> None:
        deployment = get(kn, "deployment", "shop")
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": deployment["metadata"]["uid"],
                 "controller": True}  # fmt: skip
        labels = {"app": "shop"}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": deployment["spec"]["template"]}
        meta = {"name": "shop-1", "labels": labels, "ownerReferences": [owner]}
        kn(
            "create",
            "-f",
            "-",
            stdin=json.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}),
        )
        status = {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1}}
        kn("patch", "replicaset", "shop-1", "--subresource=status", "--type=merge", "-p", json.dumps(status))

    def controller() -> None:
        eventually_blocking(ready)
        replica_set()

    thread = threading.Thread(target=controller)
    thread.start()
    try:
        assert "STATUS: deployed" in helm("install", "shop", str(chart), "--wait", "--timeout", "20s").out
    finally:
        thread.join()

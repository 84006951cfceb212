"""karmadactl apply beside the real kubectl apply: the same files in two namespaces leave the same behind."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from karmada.cli.karmadactl import main
from karmada.kube.objects.gvrs import NAMESPACES
from karmada.kube.objects.types import Obj
from tests.e2e.places import Place
from tests.support.programs import Program, Result, ServerProcess

pytestmark = pytest.mark.e2e

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.apply.example.com}
spec:
  group: apply.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

FIRST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {keep: "1", drop: "2"}}
data: {colour: "<blue> & red", size: large}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {a: b}}
    spec:
      volumes:
      - {name: cache, emptyDir: {}}
      - {name: conf, configMap: {name: settings}}
      containers:
      - name: main
        image: nginx:1.27
        ports: [{containerPort: 80}, {containerPort: 443, name: tls}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: C, value: "3"}]
        volumeMounts: [{name: cache, mountPath: /cache}, {name: conf, mountPath: /conf}]
      - {name: helper, image: "busybox:1", args: [a, b]}
---
apiVersion: v1
kind: Service
metadata: {name: web, finalizers: [example.com/one, example.com/two]}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}, {name: https, port: 443}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apply.example.com/v1
kind: Gadget
metadata: {name: one}
spec: {list: [1, 2], map: {a: 1, b: {c: 2, d: 3}}, gone: x}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, imagePullSecrets: [{name: one}]}
- {apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {k: v}}
"""

SECOND = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {keep: "1"}}
data: {colour: green, added: "yes"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes:
      - {name: cache, hostPath: {path: /tmp}}
      containers:
      - {name: second, image: "busybox:2"}
      - name: main
        image: nginx:1.28
        ports: [{containerPort: 443, name: tls}, {containerPort: 8080}]
        env: [{name: C, value: "3"}, {name: A, value: null}, {name: D, value: "4"}]
        volumeMounts: [{name: cache, mountPath: /cache}]
---
apiVersion: v1
kind: Service
metadata: {name: web, finalizers: [example.com/two, example.com/three]}
spec:
  selector: {app: web, tier: front}
  ports: [{name: https, port: 443, targetPort: 8443}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: apply.example.com/v1
kind: Gadget
metadata: {name: one}
spec: {list: [2], map: {a: 1, b: {c: 3}}, new: {deep: {er: 1}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {k: w}
"""

OTHERS = [
    ("configmap", "settings", {"data": {"others": "stays", "colour": "c"}, "metadata": {"labels": {"others": "1"}}}),
    ("deployment", "web", {"spec": {"replicas": 5, "template": {"spec": {"containers": [
        {"name": "sidecar", "image": "proxy:1"},
        {"name": "main", "env": [{"name": "OTHERS", "value": "x"}], "ports": [{"containerPort": 9}]}]}}}}),
    ("service", "web", {"spec": {"ports": [{"name": "extra", "port": 1000}]}}),
    ("serviceaccount", "robot", {"imagePullSecrets": [{"name": "two"}]}),
]  # fmt: skip

KINDS = "configmap,deployment,service,poddisruptionbudget,gadget,serviceaccount,secret"


class Pair:
    """The real kubectl and karmadactl, each with a namespace, whose name is no part of what they say."""

    def __init__(self, kubectl: Program, server: ServerProcess, namespace: str) -> None:
        self._kubectl, self._kubeconfig = kubectl, str(server.kubeconfig)
        self._theirs, self._mine = namespace, f"{namespace}-ours"

    def theirs(self, *words: str, stdin: str = "", check: bool = True, namespace: str = "") -> Result:
        """kubectl, in its own namespace or in another."""
        where = namespace or self._theirs
        done = self._kubectl("-n", where, *words, stdin=stdin, check=check)
        renamed = done.err.replace("kubectl apply", "karmadactl apply").replace("kubectl create", "karmadactl create")
        return Result(done.code, done.out.replace(where, "NS"), renamed.replace(where, "NS"))

    def ours(self, *words: str, stdin: str = "", check: bool = True) -> Result:
        flags = ["--kubeconfig", self._kubeconfig, "-n", self._mine]
        done = CliRunner().invoke(main, [words[0], *flags, *words[1:]], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
        assert not check or done.exit_code == 0, f"{words} failed: {done.stderr}"
        return Result(done.exit_code, done.stdout.replace(self._mine, "NS"), done.stderr.replace(self._mine, "NS"))

    def both(self, *words: str, stdin: str = "") -> Result:
        """What both say, which must be the same."""
        theirs, ours = (run(*words, stdin=stdin, check=False) for run in (self.theirs, self.ours))
        assert (ours.code, ours.out, ours.err) == (theirs.code, theirs.out, theirs.err)
        return ours

    def in_both(self, *words: str) -> None:
        """kubectl, in both namespaces."""
        for namespace in (self._theirs, self._mine):
            self.theirs(*words, namespace=namespace)

    def same(self, kinds: str) -> list[Obj]:
        """The objects, which must be the same in both namespaces but for what differs from run to run."""
        theirs, ours = (self._state(kinds, namespace) for namespace in (self._theirs, self._mine))
        assert ours == theirs
        return ours

    def _state(self, kinds: str, namespace: str) -> list[Obj]:
        output = self.theirs("get", kinds, "-o", "json", "--show-managed-fields", namespace=namespace)
        items: list[Obj] = json.loads(output.out)["items"]
        for item in items:
            for field in ("uid", "resourceVersion", "creationTimestamp"):
                item["metadata"].pop(field, None)
            managers = item["metadata"].get("managedFields", [])
            for entry in managers:
                entry.pop("time", None)
            managers.sort(key=lambda entry: (entry["manager"], entry["operation"]))  # the server sorts them by time
            for field in ("clusterIP", "clusterIPs"):
                item.get("spec", {}).pop(field, None)
        return items


@pytest.fixture(scope="module")
def gadgets(kubectl: Program) -> None:
    kubectl("apply", "-f", "-", stdin=CRD)
    kubectl("wait", "--for=condition=established", "crd/gadgets.apply.example.com")


@pytest.fixture
def pair(server: ServerProcess, kubectl: Program, place: Place, namespace: str) -> Iterator[Pair]:
    place.create(NAMESPACES, {"metadata": {"name": f"{namespace}-ours"}})
    yield Pair(kubectl, server, namespace)
    place.delete(NAMESPACES, f"{namespace}-ours")


@pytest.mark.usefixtures("gadgets")
def test_the_same_files_leave_the_same_objects(pair: Pair) -> None:
    assert pair.both("apply", "-f", "-", stdin=FIRST).out.count(" created\n") == 7
    assert len(pair.same(KINDS)) >= 7
    pair.both("apply", "-f", "-", stdin=FIRST)
    for kind, name, patch in OTHERS:
        pair.in_both("patch", kind, name, "-p", json.dumps(patch))
    pair.both("apply", "-f", "-", stdin=SECOND)
    pair.same(KINDS)
    pair.both("apply", "-f", "-", stdin=SECOND)
    [web] = [obj for obj in pair.same(KINDS) if obj["kind"] == "Deployment"]
    assert {container["name"] for container in web["spec"]["template"]["spec"]["containers"]} == {
        "second",
        "main",
        "sidecar",
    }


def test_the_same_words_for_what_cannot_be(pair: Pair) -> None:
    pair.both(
        "apply",
        "-f",
        "-",
        stdin="""
apiVersion: v1
kind: ConfigMap
metadata: {name: good}
---
apiVersion: nope/v1
kind: Foo
metadata: {name: bad}
---
apiVersion: v1
kind: Secret
metadata: {name: strict}
bogus: 1
---
apiVersion: v1
kind: ConfigMap
metadata: {generateName: some}
""",
    )
    deployment = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: fixed}\nspec:\n  selector: {matchLabels: {a: b}}\n"
        "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: i}]}}\n"
    )
    pair.both("apply", "-f", "-", stdin=deployment)
    pair.both("apply", "-f", "-", stdin=deployment.replace("a: b", "a: c"))
    pair.both("apply", "--force", "-f", "-", stdin=deployment.replace("a: b", "a: c"))


def test_dry_runs_and_missing_annotations(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n")
    for mode in ("client", "server"):
        pair.both("apply", f"--dry-run={mode}", "-f", str(file))
    pair.in_both("create", "-f", str(file))
    warned = pair.both("apply", "-f", str(file))
    assert "missing the kubectl.kubernetes.io/last-applied-configuration annotation" in warned.err
    for mode in ("client", "server"):
        pair.both("apply", f"--dry-run={mode}", "-f", str(file))
    pair.both("apply", "view-last-applied", "configmap/c")
    pair.both("apply", "-f", str(file), "-o", "name")


def test_moving_to_the_servers_side(pair: Pair) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1', b: '2'}\n"
    pair.both("apply", "-f", "-", stdin=manifest)
    pair.both("apply", "--server-side", "-f", "-", stdin=manifest.replace(", b: '2'", ""))
    assert [item["data"] for item in pair.same("configmap") if item["metadata"]["name"] == "c"] == [{"a": "1"}]
    refused = pair.both(
        "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=manifest.replace("'1'", "'9'")
    )
    assert 'conflict with "kubectl"' in refused.err
    pair.both(
        "apply", "--server-side", "--force-conflicts", "--field-manager=other", "-f", "-",
        stdin=manifest.replace("'1'", "'9'"),
    )  # fmt: skip
    pair.same("configmap")


def test_pruning(pair: Pair) -> None:
    one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: x}}\n"
    two = one.replace("one", "two")
    pair.both("apply", "-f", "-", stdin=f"{one}---\n{two}")
    allow = "--prune-allowlist=core/v1/ConfigMap"
    pair.both("apply", "--prune", "-l", "app=x", allow, "--dry-run=client", "-f", "-", stdin=one)
    assert "two pruned" in pair.both("apply", "--prune", "-l", "app=x", allow, "-f", "-", stdin=one).out
    pair.both("apply", "--prune", "-f", "-", stdin=one)
    pair.both("apply", "--prune", "--all", "--prune-allowlist=x", "-f", "-", stdin=one)


@pytest.mark.parametrize(
    "words",
    [
        ("--force-conflicts",),
        ("--server-side", "--force"),
        ("--server-side", "--dry-run=client"),
        ("--force", "--dry-run=server"),
        ("--subresource=status",),
        ("--prune", "--all", "-l", "a=b"),
        ("--validate=x",),
        ("--dry-run=x",),
        ("-l", "no=such"),
        ("-l", "no in ("),
    ],
    ids=" ".join,
)
def test_flags_that_do_not_go_together(pair: Pair, words: tuple[str, ...]) -> None:
    assert (
        pair.both("apply", *words, "-f", "-", stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n").code == 1
    )


def test_editing_what_was_applied(pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ours = pair.ours
    ours("apply", "-f", "-", stdin="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/a: b/a: edited/' \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setitem(os.environ, "KUBE_EDITOR", str(editor))
    assert ours("apply", "edit-last-applied", "configmap", "c").out == "configmap/c edited\n"
    assert "a: edited" in ours("apply", "view-last-applied", "configmap", "c").out
    file = tmp_path / "c.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: set}\n")
    pair.both("apply", "view-last-applied", "configmap", "nobody")
    assert ours("apply", "set-last-applied", "-f", str(file)).out == "configmap/c configured\n"
    assert ours("apply", "set-last-applied", "-f", str(file)).out == "set-last-applied c: no changes required.\n"

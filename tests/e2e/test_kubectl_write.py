"""kubectl's ways of changing things, against a real server process."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.manifests import WEB
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object
from tests.support.programs import Program, Result

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., Result]
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: blue, size: large}\n"


@pytest.fixture
def web(kn: Kubectl) -> None:
    kn("apply", "-f", "-", stdin=WEB)


def image(kn: Kubectl) -> str:
    return kn("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}").out


def test_apply_creates_then_changes_then_leaves_alone(kn: Kubectl) -> None:
    assert kn("apply", "-f", "-", stdin=CONFIG).out == "configmap/settings created\n"
    assert kn("apply", "-f", "-", stdin=CONFIG).out == "configmap/settings unchanged\n"
    changed = CONFIG.replace("blue", "red").replace(", size: large", "")
    assert kn("apply", "-f", "-", stdin=changed).out == "configmap/settings configured\n"
    assert kn("get", "cm", "settings", "-o", "json").json()["data"] == {"colour": "red"}


@pytest.mark.usefixtures("web")
def test_apply_merges_containers_by_name(kn: Kubectl) -> None:
    kn(
        "patch",
        "deploy",
        "web",
        "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox:1"}]}}}}',
    )
    kn("apply", "-f", "-", stdin=WEB.replace("nginx:1.27", "nginx:1.28"))
    containers = kn("get", "deploy", "web", "-o", "json").json()["spec"]["template"]["spec"]["containers"]
    assert {c["name"]: c["image"] for c in containers} == {"main": "nginx:1.28", "side": "busybox:1"}


def test_create_generators_send_protobuf_and_are_understood(kn: Kubectl) -> None:
    kn("create", "deployment", "gen", "--image=nginx", "--replicas=3", "--port=80")
    kn("create", "configmap", "cm", "--from-literal=a=1")
    kn("create", "secret", "generic", "sec", "--from-literal=password=x")
    kn("create", "service", "clusterip", "svc", "--tcp=80:8080")
    kn("create", "job", "job", "--image=busybox", "--", "true")
    kn("create", "cronjob", "cj", "--image=busybox", "--schedule=*/5 * * * *")
    kn("create", "quota", "q", "--hard=pods=3")
    kn("create", "role", "r", "--verb=get", "--resource=pods")
    kn("create", "ingress", "ing", "--rule=example.com/*=svc:80")
    kn("create", "poddisruptionbudget", "pdb", "--selector=app=gen", "--min-available=1")
    made = kn("get", "deploy", "gen", "-o", "json").json()
    assert made["spec"]["replicas"] == 3
    assert made["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert kn("create", "configmap", "cm", check=False).err.startswith("error: failed to create configmap: configmaps")
    assert "already exists" in kn("create", "configmap", "cm", check=False).err


@pytest.mark.usefixtures("web")
def test_patch_in_all_four_forms(kn: Kubectl) -> None:
    kn("patch", "deploy", "web", "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"a:1"}]}}}}')
    assert image(kn) == "a:1"
    kn("patch", "deploy", "web", "--type=json",
       "-p", '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"b:1"}]')  # fmt: skip
    assert image(kn) == "b:1"
    kn("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"annotations":{"note":"hello"}}}')
    assert kn("get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.note}").out == "hello"
    config = json.dumps(kube_object("v1", "ConfigMap", "applied", data={"a": "1"}))
    applied = kn("apply", "--server-side", "--field-manager=me", "-f", "-", stdin=config)
    assert "serverside-applied" in applied.out
    refused = kn("patch", "deploy", "web", "--type=json", "-p", '[{"op":"test","path":"/spec/replicas","value":99}]',
                 check=False)  # fmt: skip
    assert refused.code != 0
    assert "the server rejected our request due to an error in our request" in refused.err


def test_server_side_apply_reports_and_forces_conflicts(kn: Kubectl) -> None:
    mine = CONFIG.replace(", size: large", "")
    kn("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=mine)
    theirs = mine.replace("blue", "red")
    refused = kn("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=theirs, check=False)
    assert 'Apply failed with 1 conflict: conflict with "one": .data.colour' in refused.err
    assert kn("get", "cm", "settings", "-o", "json").json()["data"] == {"colour": "blue"}
    kn("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=theirs)
    shown = kn("get", "cm", "settings", "-o", "json", "--show-managed-fields").json()
    assert shown["data"] == {"colour": "red"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in shown["metadata"]["managedFields"]}
    assert "f:data" in owners["two"]
    assert "f:data" not in owners.get("one", {})


def test_client_side_apply_moves_over_to_server_side(kn: Kubectl) -> None:
    kn("apply", "-f", "-", stdin=CONFIG)
    moved = kn("apply", "--server-side", "-f", "-", stdin=CONFIG.replace("blue", "red"))
    assert "serverside-applied" in moved.out
    assert kn("get", "cm", "settings", "-o", "json").json()["data"]["colour"] == "red"


@pytest.mark.usefixtures("web")
def test_diff_shows_what_an_apply_would_do_and_changes_nothing(kn: Kubectl) -> None:
    differing = kn("diff", "-f", "-", stdin=WEB.replace("nginx:1.27", "nginx:1.99"), check=False)
    assert differing.code == 1, differing.err
    changed = [line for line in differing.out.splitlines() if "image:" in line and line[0] in "+-"]
    assert [line.split()[-1] for line in changed] == ["nginx:1.27", "nginx:1.99"]
    assert image(kn) == "nginx:1.27"
    assert kn("diff", "-f", "-", stdin=WEB).code == 0


@pytest.mark.usefixtures("web")
def test_edit_with_a_scripted_editor(kubectl: Program, kn: Kubectl, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/nginx:1.27/nginx:9.9/' \"$1\"\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    kubectl.env["EDITOR"] = str(editor)
    assert "deployment.apps/web edited" in kn("edit", "deploy", "web").out
    assert image(kn) == "nginx:9.9"


@pytest.mark.usefixtures("web")
def test_label_annotate_and_scale(kn: Kubectl) -> None:
    kn("label", "deploy", "web", "team=blue")
    kn("label", "deploy", "web", "tier-")
    labels = kn("get", "deploy", "web", "-o", "json").json()["metadata"]["labels"]
    assert labels == {"app": "web", "team": "blue"}
    assert "already has a value" in kn("label", "deploy", "web", "team=red", check=False).err
    kn("annotate", "deploy", "web", "why=because")
    kn("scale", "deploy", "web", "--replicas=6", "--current-replicas=2")
    kn("scale", "deploy", "web", "--replicas=4")
    scaled = kn("get", "deploy", "web", "-o", "json").json()
    assert scaled["spec"]["replicas"] == 4
    assert scaled["metadata"]["annotations"]["why"] == "because"
    assert kn("scale", "deploy", "web", "--replicas=1", "--current-replicas=9", check=False).code != 0


@pytest.mark.usefixtures("web")
def test_rollout_works_on_the_objects(kn: Kubectl, namespace: str) -> None:
    deployment = kn("get", "deploy", "web", "-o", "json").json()
    for revision, tag in (("1", "nginx:1.26"), ("2", "nginx:1.27")):
        kn("create", "-f", "-", stdin=json.dumps(replica_set(deployment, revision, tag)))
    history = kn("rollout", "history", "deploy/web").out
    assert "1 " in history
    assert "2 " in history
    kn("rollout", "undo", "deploy/web", "--to-revision=1")
    assert image(kn) == "nginx:1.26"
    kn("rollout", "restart", "deploy/web")
    assert "restartedAt" in kn("get", "deploy", "web", "-o", "yaml").out
    generation = kn("get", "deploy", "web", "-o", "json").json()["metadata"]["generation"]
    status = {
        "observedGeneration": generation,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    kn("patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert "successfully rolled out" in kn("rollout", "status", "deploy/web", "--timeout=100s").out
    kn("rollout", "pause", "deploy/web")
    assert kn("get", "deploy", "web", "-o", "jsonpath={.spec.paused}").out == "true"


def replica_set(deployment: dict[str, Any], revision: str, tag: str) -> dict[str, Any]:
    meta = deployment["metadata"]
    template = json.loads(json.dumps(deployment["spec"]["template"]))
    template["metadata"]["labels"]["pod-template-hash"] = f"h{revision}"
    template["spec"]["containers"][0]["image"] = tag
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": meta["uid"], "controller": True}
    return kube_object(
        "apps/v1",
        "ReplicaSet",
        f"web-h{revision}",
        meta["namespace"],
        labels=template["metadata"]["labels"],
        annotations={"deployment.kubernetes.io/revision": revision},
        ownerReferences=[owner],
    ) | {"spec": {"replicas": 0, "selector": {"matchLabels": template["metadata"]["labels"]}, "template": template}}


@pytest.mark.usefixtures("web")
def test_set_image_expose_autoscale_and_replace(kn: Kubectl) -> None:
    kn("set", "image", "deploy/web", "main=nginx:2")
    assert image(kn) == "nginx:2"
    kn("expose", "deploy", "web", "--name=exposed", "--port=80", "--type=NodePort")
    port = kn("get", "svc", "exposed", "-o", "jsonpath={.spec.ports[0].nodePort}").out
    assert 30000 <= int(port) <= 32767
    kn("autoscale", "deploy", "web", "--max=5", "--cpu-percent=70")
    assert kn("get", "hpa", "web").lines[1].split()[1] == "Deployment/web"
    live = kn("get", "svc", "exposed", "-o", "json").json()
    live["spec"]["type"] = "ClusterIP"
    for item in live["spec"]["ports"]:
        item.pop("nodePort")
    kn("replace", "-f", "-", stdin=json.dumps(live))
    assert "nodePort" not in kn("get", "svc", "exposed", "-o", "yaml").out


def test_dry_run_changes_nothing(kn: Kubectl) -> None:
    assert "(server dry run)" in kn("apply", "--dry-run=server", "-f", "-", stdin=WEB).out
    assert kn("get", "deploy,svc", "-o", "name").out == ""


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_deleting_an_owner_deletes_what_it_owns(kn: Kubectl, cascade: str) -> None:
    kn("apply", "-f", "-", stdin=WEB)
    deployment = kn("get", "deploy", "web", "-o", "json").json()
    owned = replica_set(deployment, "1", "nginx")
    owned["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
    kn("create", "-f", "-", stdin=json.dumps(owned))
    kn("delete", "deploy", "web", f"--cascade={cascade}", timeout=30)
    eventually_blocking(lambda: kn("get", "rs,deploy", "-o", "name").out == "")


def test_deleting_with_orphans_keeps_them_and_frees_them(kn: Kubectl) -> None:
    kn("apply", "-f", "-", stdin=WEB)
    deployment = kn("get", "deploy", "web", "-o", "json").json()
    kn("create", "-f", "-", stdin=json.dumps(replica_set(deployment, "1", "nginx")))
    kn("delete", "deploy", "web", "--cascade=orphan", timeout=30)
    left = kn("get", "rs", "web-h1", "-o", "json").json()
    assert "ownerReferences" not in left["metadata"]


def test_delete_waits_for_finalizers(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    held = kube_object("v1", "ConfigMap", "held", finalizers=["example.com/hold"])
    kn("create", "-f", "-", stdin=json.dumps(held))
    deleting = kubectl.start("-n", namespace, "delete", "cm", "held")
    eventually_blocking(lambda: kn("get", "cm", "held", "-o", "jsonpath={.metadata.deletionTimestamp}").out)
    assert deleting.poll() is None
    kn("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert deleting.wait(15) == 0
    assert kn("get", "cm", "held", check=False).code != 0


def test_deleting_a_namespace_empties_it(kubectl: Program) -> None:
    kubectl("create", "namespace", "goner")
    kubectl("-n", "goner", "apply", "-f", "-", stdin=WEB)
    kubectl("delete", "namespace", "goner", timeout=30)
    assert kubectl("get", "namespace", "goner", check=False).code != 0
    refused = kubectl("delete", "namespace", "default", check=False)
    assert 'namespaces "default" is forbidden: this namespace may not be deleted' in refused.err


def test_deletion_by_selector_and_of_everything(kn: Kubectl) -> None:
    for name in ("a", "b", "c"):
        kn("create", "configmap", name)
        kn("label", "configmap", name, f"set={'odd' if name != 'b' else 'even'}")
    kn("delete", "configmap", "-l", "set=odd")
    left = kn("get", "cm", "-l", "set", "-o", "name").lines
    assert left == ["configmap/b"]


def test_bad_manifests_get_kubernetes_own_answers(kn: Kubectl) -> None:
    strict = kn("apply", "-f", "-", stdin=WEB.replace("replicas: 2", "replicaz: 2"), check=False)
    assert 'strict decoding error: unknown field "spec.replicaz"' in strict.err
    loose = kn("apply", "--validate=warn", "-f", "-", stdin=WEB.replace("replicas: 2", "replicaz: 2"))
    assert 'Warning: unknown field "spec.replicaz"' in loose.err
    wrong = WEB.replace("replicas: 2", "replicas: -2").replace("name: web,", "name: neg,")
    negative = kn("create", "-f", "-", stdin=wrong, check=False)
    assert 'Deployment.apps "neg" is invalid: spec.replicas: Invalid value: -2' in negative.err
    immutable = WEB.replace("matchLabels: {app: web}", "matchLabels: {app: other}").replace(
        "labels: {app: web}}\n    spec", "labels: {app: other}}\n    spec"
    )
    refused = kn("apply", "-f", "-", stdin=immutable, check=False)
    assert "field is immutable" in refused.err

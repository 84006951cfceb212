"""kubectl's ways of looking, against a real server process."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from tests.e2e.manifests import WEB
from tests.support.eventually import eventually_blocking
from tests.support.programs import Program, Result, columns

pytestmark = pytest.mark.e2e
Kubectl = Callable[..., Result]


@pytest.fixture
def web(kn: Kubectl) -> None:
    kn("apply", "-f", "-", stdin=WEB)


@pytest.mark.usefixtures("web")
def test_get_shows_the_columns_of_a_real_cluster(kn: Kubectl) -> None:
    assert columns(kn("get", "deployments")) == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert columns(kn("get", "deploy", "-o", "wide"))[5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert columns(kn("get", "svc")) == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert columns(kn("get", "cm")) == ["NAME", "DATA", "AGE"]
    assert columns(kn("get", "secret")) == ["NAME", "TYPE", "DATA", "AGE"]
    row = kn("get", "deploy", "web").lines[1].split()
    assert row[:4] == ["web", "0/2", "0", "0"]
    service = kn("get", "svc", "web").lines[1].split()
    assert service[1] == "ClusterIP"
    assert service[2].startswith("10.")
    assert service[3:5] == ["<none>", "80/TCP"]


@pytest.mark.usefixtures("web")
def test_get_in_every_output_form(kn: Kubectl) -> None:
    as_json = kn("get", "deploy", "web", "-o", "json").json()
    assert as_json["kind"] == "Deployment"
    assert as_json["spec"]["strategy"]["type"] == "RollingUpdate"
    assert as_json["metadata"]["uid"]
    assert as_json["metadata"]["generation"] == 1
    assert yaml.safe_load(kn("get", "deploy", "web", "-o", "yaml").out)["spec"] == as_json["spec"]
    assert kn("get", "deploy,svc", "-o", "name").lines == ["deployment.apps/web", "service/web"]
    assert kn("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}").out == "nginx:1.27"
    custom = kn("get", "deploy", "-o", "custom-columns=N:.metadata.name,I:.spec.template.spec.containers[*].image")
    assert custom.lines == ["N     I", "web   nginx:1.27"]


@pytest.mark.usefixtures("web")
def test_selectors_labels_and_sorting(kn: Kubectl) -> None:
    kn("create", "configmap", "alpha")
    kn("label", "configmap", "alpha", "app=other", "rank=9")

    def names(*arguments: str) -> list[str]:
        return [line.split("/")[1] for line in kn("get", "cm", "-o", "name", *arguments).lines]

    mine = {"alpha", "settings"}
    assert names("-l", "app=web") == ["settings"]
    assert names("-l", "app in (other)") == ["alpha"]
    assert set(names("-l", "!rank")) & mine == {"settings"}
    assert set(names("-l", "rank>5")) & mine == {"alpha"}
    assert names("--field-selector", "metadata.name=alpha") == ["alpha"]
    assert set(names("--field-selector", "metadata.name!=alpha")) & mine == {"settings"}
    assert "app=other,rank=9" in kn("get", "cm", "alpha", "--show-labels").out
    assert kn("get", "secrets", "--field-selector", "type=Opaque", "-o", "name").lines == ["secret/password"]
    by_name = [n for n in names("--sort-by=.metadata.name") if n in mine]
    assert by_name == sorted(by_name)
    assert kn("get", "cm", "alpha", "-L", "rank").lines[1].split()[-1] == "9"


@pytest.mark.usefixtures("web")
def test_all_namespaces_and_the_all_category(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    listed = kubectl("get", "deploy", "-A").lines
    assert listed[0].split()[0] == "NAMESPACE"
    assert any(line.split()[:2] == [namespace, "web"] for line in listed)
    everything = kn("get", "all", "-o", "name").lines
    assert "deployment.apps/web" in everything
    assert "service/web" in everything


@pytest.mark.usefixtures("web")
def test_a_watch_shows_changes_as_they_happen(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    watch = kubectl.start("-n", namespace, "get", "cm", "settings", "-w", "-o", "jsonpath={.data.colour}{'\\n'}")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().strip() == "blue"
        kn("patch", "cm", "settings", "--type=merge", "-p", '{"data":{"colour":"green"}}')
        assert watch.stdout.readline().strip() == "green"
    finally:
        watch.kill()
        watch.wait()


@pytest.mark.usefixtures("web")
def test_a_table_watch_prints_rows(kubectl: Program, kn: Kubectl, namespace: str) -> None:
    watch = kubectl.start("-n", namespace, "get", "deploy", "-w")
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline().split()[0] == "NAME"
        assert watch.stdout.readline().split()[:2] == ["web", "0/2"]
        kn("scale", "deploy", "web", "--replicas=7")
        assert watch.stdout.readline().split()[:2] == ["web", "0/7"]
    finally:
        watch.kill()
        watch.wait()


@pytest.mark.usefixtures("web")
def test_describe_shows_the_object_and_its_events(kn: Kubectl, namespace: str) -> None:
    uid = kn("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}").out
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": namespace},
        "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": namespace,
                           "uid": uid},
        "reason": "Looked", "message": "somebody looked", "type": "Normal", "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "tests"},
    }  # fmt: skip
    kn("create", "-f", "-", stdin=json.dumps(event))
    text = kn("describe", "deploy", "web").out
    assert "StrategyType:           RollingUpdate" in text
    assert "somebody looked" in text
    assert "Looked" in kn("get", "events").out
    assert "password:  6 bytes" in kn("describe", "secret", "password").out


def test_a_missing_object_and_an_unknown_kind_read_like_kubernetes(kn: Kubectl) -> None:
    missing = kn("get", "deploy", "nothing", check=False)
    assert missing.err.strip() == 'Error from server (NotFound): deployments.apps "nothing" not found'
    unknown = kn("get", "unicorns", check=False)
    assert 'the server doesn\'t have a resource type "unicorns"' in unknown.err


def test_long_lists_come_in_pages_and_in_order(kn: Kubectl) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"item-{n:03d}"}} for n in range(60)]
    kn("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    paged = kn("get", "cm", "--chunk-size=7", "-o", "name").lines
    whole = kn("get", "cm", "--chunk-size=0", "-o", "name").lines
    assert paged == whole
    assert [n for n in whole if "item-" in n] == [f"configmap/item-{n:03d}" for n in range(60)]


def test_raw_requests_reach_every_endpoint(kubectl: Program, namespace: str) -> None:
    assert kubectl("get", "--raw", "/readyz").out == "ok"
    assert "readyz check passed" in kubectl("get", "--raw", "/readyz?verbose").out
    assert kubectl("get", "--raw", "/version").json()["gitVersion"].startswith("v1.")
    listed = kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}/configmaps?limit=1").json()
    assert listed["kind"] == "ConfigMapList"
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics").out
    assert "/apis/apps/v1" in kubectl("get", "--raw", "/").json()["paths"]


def test_every_namespace_has_its_default_account_and_ca_bundle(kn: Kubectl) -> None:
    eventually_blocking(lambda: "serviceaccount/default" in kn("get", "sa", "-o", "name").lines)
    eventually_blocking(lambda: "BEGIN CERTIFICATE" in kn("get", "cm", "kube-root-ca.crt", "-o", "yaml").out)

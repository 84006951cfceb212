"""What works for clusters in Push mode works for a registered one, whose agent is a process of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.registering import NAME, Registering, registering, wait
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "nginx:1.27", envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [m1]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
  - targetCluster: {clusterNames: [m1]}
    overriders:
      imageOverrider: [{component: Registry, operator: replace, value: registry.example.com}]
"""
IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"


@pytest.fixture(scope="module")
def pull(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Registering]:
    """A registered cluster, to which a Deployment with its ConfigMap and namespace is propagated."""
    with registering(tmp_path_factory.mktemp("pull"), kubectl_path) as found:
        found.join()
        found.propagate(SHOP, "namespace/shop", "deployment/web", namespace="shop")
        wait(found.member, "deployment/web", "--for=condition=Available", namespace="shop")
        yield found


def test_overrides_and_dependencies_arrive_and_the_status_comes_back(pull: Registering) -> None:
    image = pull.member("get", "-n", "shop", "deployment/web", "-o", IMAGE).out
    assert image == "registry.example.com/nginx:1.27"
    pull.member("wait", "-n", "shop", "configmap/settings", "--for=jsonpath={.data.colour}=blue", "--timeout=100s")
    ready = "--for=jsonpath={.status.readyReplicas}=2"
    pull.karmada("wait", "-n", "shop", "deployment/web", ready, "--timeout=100s")


def test_a_change_in_the_cluster_is_corrected(pull: Registering) -> None:
    pull.member("set", "image", "-n", "shop", "deployment/web", "c=other")
    pull.member("delete", "-n", "shop", "configmap/settings")
    wanted = "--for=jsonpath={.spec.template.spec.containers[0].image}=registry.example.com/nginx:1.27"
    pull.member("wait", "-n", "shop", "deployment/web", wanted, "--timeout=100s")
    pull.member("wait", "-n", "shop", "configmap/settings", "--for=create", "--timeout=100s")


def test_users_read_into_it_through_the_control_plane(pull: Registering) -> None:
    ctl = pull.fleet.ctl
    pull.member("wait", "clusterrolebinding/karmada-impersonator", "--for=create", "--timeout=100s")
    rows = ctl("get", "pods", "-n", "shop", "-C", NAME).lines
    assert len(rows) == 3
    pod = rows[1].split()[0]
    assert ctl("logs", pod, "-n", "shop", "-C", NAME, "--tail=1").lines
    assert ctl("exec", pod, "-n", "shop", "-C", NAME, "--", "hostname").out.strip() == pod


def test_a_cordoned_cluster_gets_nothing_new(pull: Registering) -> None:
    pull.fleet.ctl("cordon", NAME)
    new = SHOP.replace("shop", "later")
    pull.karmada("apply", "-f", "-", stdin=new)
    scheduled = "--for=jsonpath={.status.conditions[?(@.type=='Scheduled')].reason}=NoClusterFit"
    pull.karmada("wait", "-n", "later", "resourcebinding/web-deployment", "--for=create", "--timeout=100s")
    pull.karmada("wait", "-n", "later", "resourcebinding/web-deployment", scheduled, "--timeout=100s")
    assert pull.member("get", "-n", "later", "deployments", "-o", "name", check=False).out == ""
    pull.fleet.ctl("uncordon", NAME)
    pull.member("wait", "namespace/later", "--for=create", "--timeout=100s")
    pull.member("wait", "-n", "later", "deployment/web", "--for=create", "--timeout=100s")
    pull.karmada("delete", "-f", "-", "--ignore-not-found", stdin=new)


def test_a_cluster_that_the_control_plane_cannot_reach_says_so_and_works_on(pull: Registering) -> None:
    """As behind a firewall: what the agent fetches arrives, what goes into the cluster is an error with its reason."""
    endpoint = '{"spec":{"apiEndpoint":"%s"}}'
    way = pull.karmada("get", "cluster", NAME, "-o", "jsonpath={.spec.apiEndpoint}").out
    pull.karmada("patch", "cluster", NAME, "--type=merge", "-p", endpoint % "https://127.0.0.1:1")
    try:
        refused = pull.fleet.ctl("get", "pods", "-n", "shop", "-C", NAME, check=False)
        assert refused.code == 1
        assert f"cluster({NAME})" in refused.err
        pull.karmada("scale", "-n", "shop", "deployment/web", "--replicas=3")
        pull.member("wait", "-n", "shop", "deployment/web", "--for=jsonpath={.spec.replicas}=3", "--timeout=100s")
        pull.karmada(
            "wait", "-n", "shop", "deployment/web", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=100s"
        )
    finally:
        pull.karmada("patch", "cluster", NAME, "--type=merge", "-p", endpoint % way)


def test_what_is_deleted_leaves_the_cluster(pull: Registering) -> None:
    pull.karmada("delete", "-n", "shop", "deployment/web")

    def gone() -> bool:
        return pull.member("get", "-n", "shop", "deployments,configmaps", "-o", "name").out.split() == [
            "configmap/kube-root-ca.crt"
        ]

    eventually_blocking(gone)

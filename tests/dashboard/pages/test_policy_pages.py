"""Policies, over a control plane in memory: the list, one with its editor, what it would move, and applying it."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada.api.cluster import Cluster
from karmada.api.policy import PropagationPolicy
from karmada.dashboard.blast_radius import policies_in
from karmada.dashboard.pages.policies import places_in_words, selects_in_words
from karmada.kube.client.client import Client
from karmada.kube.objects.gvrs import DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.prediction.errors import PredictionError
from tests.dashboard.pages.test_workload_pages import TEMPLATE
from tests.support.cases import cases
from tests.support.dashboard_client import DashboardPlane, dashboard_plane

_THEN = "2026-01-01T00:00:00Z"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: web, namespace: default}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, name: {name}}}]
  placement: {{clusterAffinity: {{clusterNames: [m1, m2]}}}}
"""


async def clusters(client: Client, *names: str) -> None:
    for name in names:
        made = await client.create(
            Cluster.gvr,
            {
                "apiVersion": Cluster.gvk.api_version,
                "kind": "Cluster",
                "metadata": {"name": name},
                "spec": {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"},
            },
        )
        apis = [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}]
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": _THEN}
        await client.update_status(Cluster.gvr, {**made, "status": {"apiEnablements": apis, "conditions": [ready]}})


async def test_what_a_policy_would_do_is_shown_and_nothing_is_written(plane: DashboardPlane) -> None:
    await plane.client.create(DEPLOYMENTS, TEMPLATE)
    await clusters(plane.client, "m1", "m2", "m3")
    browser = plane.browser
    await browser.log_in()
    assert "Try out a new policy" in (await browser.get("/policies")).text
    assert "Apply</button>" not in (await browser.get("/policies/new")).text
    form = {"csrf": browser.csrf, "text": POLICY.format(name="web")}
    shown = await browser.post("/policies/preview", form)
    assert "1 of 1</strong> selected resources would change" in shown.text
    assert "<strong>10</strong> replicas or copies would start" in shown.text
    assert "m1: 5, m2: 5" in shown.text
    nothing = await browser.post("/policies/preview", {**form, "text": POLICY.format(name="other")})
    assert "The policy selects nothing that exists." in nothing.text
    assert "not a Kubernetes object" in (await browser.post("/policies/preview", {**form, "text": "nonsense"})).text
    assert (await browser.post("/policies/apply", form)).status == 403
    assert (await plane.client.list_all(PropagationPolicy.gvr)).items == []


async def test_a_policy_is_applied_where_the_dashboard_may_write(tmp_path: Path) -> None:
    async with dashboard_plane(tmp_path, writes=True) as plane:
        browser = plane.browser
        await browser.log_in()
        assert "Apply</button>" in (await browser.get("/policies/new")).text
        form = {"csrf": browser.csrf, "text": POLICY.format(name="web")}
        done = await browser.post("/policies/apply", form)
        assert (done.status, done.headers["Location"]) == (303, "/policies/default/web")
        made = await plane.client.get(PropagationPolicy.gvr, "web", "default")
        page = (await browser.get("/policies/default/web")).text
        assert f"resourceVersion: &#39;{made['metadata']['resourceVersion']}&#39;" in page
        assert "managedFields" not in page

        stale = form["text"].replace("namespace: default", "namespace: default, resourceVersion: '1'")
        refused = await browser.post("/policies/apply", {**form, "text": stale})
        assert refused.status == 422
        assert "the object has been modified" in refused.text
        applied = "kubectl.kubernetes.io/last-applied-configuration"
        patch = {"metadata": {"annotations": {applied: "{}"}}}
        await plane.client.patch(PropagationPolicy.gvr, "web", "default", patch)
        again = await browser.post("/policies/apply", {**form, "text": POLICY.format(name="other")})
        assert again.status == 303, again.text
        changed = await plane.client.get(PropagationPolicy.gvr, "web", "default")
        assert changed["spec"]["resourceSelectors"][0]["name"] == "other"
        assert changed["metadata"]["annotations"][applied] == "{}", "kubectl needs it"
        listed = (await browser.get("/policies")).text
        assert "Deployment other in default" in listed


@cases(
    ("", "and nothing else"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "and nothing else"),
    ("apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {}", "without a name"),
    ("a: [", "line"),
)
def test_what_is_no_policy_is_refused_with_a_reason(text: str, problem: str) -> None:
    with pytest.raises(PredictionError, match=problem):
        policies_in(text)


@cases(
    ({}, "all clusters; Duplicated"),
    ({"placement": {"clusterAffinity": {"clusterNames": ["a", "b"]}}}, "a, b; Duplicated"),
    ({"placement": {"clusterAffinity": {"clusterNames": list("abcdef")}}}, "a, b, c, d and 2 more; Duplicated"),
    ({"placement": {"clusterAffinity": {"labelSelector": {}}}}, "by labels or fields; Duplicated"),
    ({"placement": {"clusterAffinities": [{"affinityName": "x"}]}}, "groups x; Duplicated"),
    (
        {
            "placement": {
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Aggregated",
                }
            }
        },
        "all clusters; Divided, Aggregated",
    ),
)
def test_a_placement_is_put_in_words(spec: Obj, words: str) -> None:
    assert places_in_words(spec) == words


def test_selectors_are_put_in_words() -> None:
    selectors = [
        {"kind": "Deployment", "name": "web"},
        {"kind": "Service", "namespace": "prod"},
        {"kind": "ConfigMap", "labelSelector": {"matchLabels": {"b": "2", "a": "1"}}},
        {"kind": "Secret", "labelSelector": {"matchExpressions": [{}]}},
    ]
    assert selects_in_words({"resourceSelectors": selectors}) == (
        "Deployment web, Service in prod, ConfigMap with a=1,b=2, Secret by expressions"
    )

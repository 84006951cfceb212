"""Workloads, policies and pods, as people see them in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import yaml
from playwright.sync_api import Route, expect

from karmada.kube.objects.gvrs import PODS
from tests.e2e.dashboard.conftest import DashboardFleet
from tests.support.browser import LIMIT_MS, NARROW, WIDE, Scheme, Tab
from tests.support.eventually import eventually_blocking

Opens = Callable[..., AbstractContextManager[Tab]]
PAGE = "/workloads/apps/v1/deployments/default/shop"
MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default, labels: {app: shop}}
spec:
  replicas: 4
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: shop, image: "nginx:1.27"}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: shop}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
          - {targetCluster: {clusterNames: [member1]}, weight: 3}
          - {targetCluster: {clusterNames: [member2]}, weight: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: shop}]
  overrideRules:
    - targetCluster: {clusterNames: [member2]}
      overriders: {imageOverrider: [{component: Registry, operator: add, value: registry.example}]}
"""


MOVE = """() => {
  const editor = document.querySelector(".CodeMirror").CodeMirror;
  editor.setValue(editor.getValue().replace("    - member1\\n", "").replaceAll("member2", "member3"));
}"""


@pytest.fixture(scope="module")
def shop(dashboard: DashboardFleet) -> Iterator[DashboardFleet]:
    """A Deployment with three replicas in member1 and one in member2."""
    objects = list(yaml.safe_load_all(MANIFESTS))
    dashboard.fleet.apply(*objects)
    yield dashboard
    dashboard.fleet.delete(*objects)


def clusters_of(shop: DashboardFleet) -> dict[str, int]:
    binding = shop.fleet.binding("Deployment", "shop")
    assert binding is not None
    return {one["name"]: one["replicas"] for one in binding["spec"].get("clusters") or ()}


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_a_workload_is_seen_from_its_template_to_its_pods(
    shop: DashboardFleet, open_tab: Opens, width: int, scheme: Scheme
) -> None:
    with open_tab(width=width, scheme=scheme) as tab:
        tab.log_in(shop.admin, "/workloads")
        tab.reach(f"a[href='{PAGE}']")
        tab.is_readable()
        tab.page.keyboard.press("Enter")
        tab.see("4 of 4")
        tab.is_live()
        expect(tab.page.locator("#graph")).to_have_attribute("data-nodes", "11")  # 3, two for each cluster, and 4 pods
        tab.see("weight 3 of 4")
        tab.see("did not match the placement cluster affinity constraint")
        tab.is_readable()
        tab.shot("workload" if width == WIDE else "workload-narrow", whole=True)
        tab.reach("[data-node='object/member2']")
        tab.page.keyboard.press("Enter")
        expect(tab.page.locator(".difference .added", has_text="registry.example/nginx")).to_be_visible()
        tab.is_readable()
        tab.page.locator("#node a[href^='/pods/member2/']").first.click()
        tab.see("shop line 1", "#log")
        tab.is_readable()


def test_a_workload_page_follows_what_kubectl_changes(shop: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        tab.log_in(shop.admin, PAGE)
        tab.see("4 of 4")
        tab.is_live()
        shop.fleet.kubectl("scale", "deployment/shop", "--replicas=8")
        tab.see("8 of 8")
        shop.fleet.kubectl("scale", "deployment/shop", "--replicas=4")
        tab.see("4 of 4")


def test_what_a_policy_would_move_is_what_then_moves(shop: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        tab.log_in(shop.admin, "/policies")
        tab.page.get_by_role("link", name="default/shop").click()
        tab.see("Has claimed")
        expect(tab.page.locator(".CodeMirror")).to_be_visible()
        tab.page.evaluate(MOVE)
        apply = tab.page.get_by_role("button", name="Apply")
        expect(apply).to_be_disabled()
        tab.page.get_by_role("button", name="Show what would move").click()
        row = tab.page.locator("#radius tr[data-changed=yes]")
        expect(row.locator("td").nth(1)).to_have_text("member1: 3, member2: 1")
        expect(row.locator("td").nth(2)).to_have_text("member3: 4")
        assert clusters_of(shop) == {"member1": 3, "member2": 1}, "nothing is written yet"
        tab.shot("policy", whole=True)
        tab.page.evaluate(
            "document.querySelector('.CodeMirror').CodeMirror.replaceRange('# more\\n', {line: 0, ch: 0})"
        )
        expect(apply).to_be_disabled()
        tab.page.get_by_role("button", name="Show what would move").click()
        apply.click()
        tab.see("Has claimed")
        tab.open(PAGE)
        tab.see("4 of 4")
        expect(tab.page.locator("#summary tbody tr")).to_have_count(1)
        assert clusters_of(shop) == {"member3": 4}
        # Pods that are left behind would be taken for the next test's.
        eventually_blocking(lambda: not shop.fleet.members["member1"].list(PODS, "default", "app=shop"))
        shop.fleet.apply(*yaml.safe_load_all(MANIFESTS))


def test_a_click_before_the_scripts_have_come_is_not_lost(shop: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        held: list[Route] = []
        tab.page.route("**/cytoscape.min.js*", lambda route: held.append(route))
        tab.log_in(shop.admin, PAGE)
        tab.page.locator("button[data-node=binding]").click()
        assert len(held) == 1, "the scripts are still on their way"
        held[0].continue_()
        tab.see("what goes where", "#node")


def test_a_terminal_echoes_and_ends(shop: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        tab.log_in(shop.admin, PAGE)
        tab.page.locator("[data-node='object/member1']").click()  # which may be on its way back from the test before
        row = tab.page.locator("#node tr", has_text="Running")
        row.locator("a[href^='/pods/member1/']").first.click(timeout=LIMIT_MS)
        tab.page.get_by_role("button", name="Open a terminal").click()
        tab.see("open", "#terminal-state")
        tab.page.keyboard.type("echo the answer is $((6*7))\n")
        tab.see("the answer is 42", "#terminal")
        tab.page.keyboard.type("exit 3\n")
        tab.see("exit code 3", "#terminal-state")
        pod = tab.page.url.removeprefix(shop.url)
    with open_tab() as tab:
        tab.log_in(shop.reader, pod)
        tab.see("shop line 1", "#log")
        assert tab.page.get_by_role("button", name="Open a terminal").count() == 0, "no right to it in the member"


def test_what_is_forbidden_is_hidden_and_refused(shop: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        tab.expect_problem("status of 403")
        tab.log_in(shop.viewer, "/workloads")
        tab.see("forbidden")
        assert tab.page.locator("main").get_by_text("shop", exact=True).count() == 0
        tab.open(PAGE)
        tab.see("You may not see this")
        tab.is_readable()
        tab.open("/policies/new")
        assert tab.page.get_by_role("button", name="Apply").count() == 0

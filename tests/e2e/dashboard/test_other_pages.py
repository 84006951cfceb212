"""Failover, scaling, quota, search and events, as people see them in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
import yaml
from playwright.sync_api import expect

from karmada.api.work import ResourceBinding
from tests.e2e.dashboard.conftest import DashboardFleet
from tests.support.browser import NARROW, WIDE, Scheme, Tab

Opens = Callable[..., AbstractContextManager[Tab]]
MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: bank, namespace: default, labels: {app: bank}}
spec:
  replicas: 2
  selector: {matchLabels: {app: bank}}
  template:
    metadata: {labels: {app: bank}}
    spec:
      containers: [{name: bank, image: "nginx:1.27", resources: {requests: {cpu: 100m}}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bank, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: bank}]
  placement:
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: team, namespace: default}
spec: {overall: {cpu: "4"}}
---
apiVersion: autoscaling.karmada.io/v1alpha1
kind: FederatedHPA
metadata: {name: bank, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: bank}
  minReplicas: 2
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
---
apiVersion: search.karmada.io/v1alpha1
kind: ResourceRegistry
metadata: {name: dashboard}
spec: {targetCluster: {}, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Pod}]}
"""


@pytest.fixture(scope="module")
def bank(dashboard: DashboardFleet) -> Iterator[DashboardFleet]:
    """A Deployment in one cluster, with an autoscaler, a quota of its namespace, and caches for the search."""
    objects = list(yaml.safe_load_all(MANIFESTS))
    dashboard.fleet.apply(*objects)
    yield dashboard
    dashboard.fleet.delete(*objects)


@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
def test_every_page_shows_what_there_is(bank: DashboardFleet, open_tab: Opens, width: int, scheme: Scheme) -> None:
    with open_tab(width=width, scheme=scheme) as tab:
        tab.log_in(bank.admin, "/quota")
        tab.see("200m of 4")  # as soon as the controllers have counted
        tab.open("/scaling")
        tab.see("cpu")
        tab.is_readable()
        tab.page.get_by_role("link", name="default/bank").click()
        tab.see("between 2 and 9 replicas")
        expect(tab.page.locator("#replicas canvas")).to_be_visible()
        tab.is_readable()
        tab.open("/search")
        tab.page.locator("input[name=q]").fill("bank")
        tab.page.keyboard.press("Enter")
        tab.see("Deployment")
        tab.is_readable()
        tab.open("/events?q=bank")
        tab.see("ScheduleBindingSucceed")
        tab.is_readable()
        tab.shot(f"events-{width}-{scheme}")
        tab.open("/failover")
        tab.see("all 3 clusters are ready")
        tab.is_readable()
        tab.reach("#run")
        tab.open("/policies/default/bank")
        expect(tab.page.locator(".CodeMirror")).to_be_visible()
        tab.is_readable()
        tab.reach("#preview")
        tab.page.keyboard.press("Enter")
        tab.see("0 of 1", "#radius")
        tab.is_readable()


def test_events_come_as_they_happen(bank: DashboardFleet, open_tab: Opens) -> None:
    with open_tab() as tab:
        tab.log_in(bank.admin)
        tab.open("/events?namespace=default&q=latecomer")
        tab.see("No events")
        tab.is_live()
        policy = yaml.safe_load(MANIFESTS.split("---")[1].replace("bank", "latecomer"))
        bank.fleet.apply(policy, {**yaml.safe_load(MANIFESTS.split("---")[0].replace("bank", "latecomer"))})
        tab.see("ScheduleBindingSucceed")


def test_a_drill_shows_what_would_happen_as_a_timeline(bank: DashboardFleet, open_tab: Opens) -> None:
    bound = bank.fleet.here.until(
        ResourceBinding.gvr, "bank-deployment", lambda binding: binding["spec"].get("clusters")
    )
    [home] = [one["name"] for one in bound["spec"]["clusters"]]
    with open_tab() as tab:
        tab.log_in(bank.admin, "/failover")
        tab.see("all 3 clusters are ready")
        tab.page.locator(f"input[name=fail][value={home}]").check()
        tab.page.locator("select[name=minutes]").select_option("15")
        tab.page.get_by_role("button", name="Run the drill").click()
        expect(tab.page.locator("#drill .notice")).to_contain_text(f"{home} failed", timeout=90_000)
        row = tab.page.locator("#drill tbody tr", has_text="default/bank")
        expect(row.locator("svg.timeline rect.bad").first).to_be_attached()
        expect(row.locator("td").nth(4)).to_have_text(f"{home}: 2")
        assert home not in row.locator("td").nth(5).inner_text()
        tab.is_readable()
        tab.shot("drill", whole=True)

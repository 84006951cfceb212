"""Texts that are scripts, in every field that takes free text: whatever page shows them shows them as texts."""

from __future__ import annotations

from collections import deque
from html import unescape
from html.parser import HTMLParser
from typing import Any

from karmada.api.autoscaling import FederatedHPA
from karmada.api.cluster import Cluster
from karmada.api.policy import PropagationPolicy
from karmada.api.work import ResourceBinding, Work
from karmada.kube.objects.gvrs import DEPLOYMENTS, EVENTS, NAMESPACES
from karmada.kube.objects.types import Obj
from tests.support.dashboard_client import DashboardPlane
from tests.support.objects import kube_object
from tests.support.propagation import placed, policy, selecting
from tests.support.workloads import one_container, workload

HOSTILE = "</script></textarea>'\"><xss onload=alert(1)>"
_MOST_PAGES = 200


class Page(HTMLParser):
    """What a browser would make of a page: its links, and the hostile text as an element or attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.broken: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "xss" or "onload" in names:
            self.broken.append(self.get_starttag_text() or tag)
        self.links += [url for name in ("href", "hx-get", "data-url") if (url := names.get(name) or "").startswith("/")]
        self.broken += [url for name in ("href", "src") if (url := names.get(name) or "").startswith("javascript:")]


def condition(kind: str) -> Obj:
    return {
        "type": kind,
        "status": "False",
        "reason": "Hostile",
        "message": HOSTILE,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


async def fill(plane: DashboardPlane) -> None:
    client, annotations = plane.client, {"note": HOSTILE}
    spec = {"syncMode": "Push", "apiEndpoint": "https://127.0.0.1:1"}
    made = await client.create(
        Cluster.gvr, kube_object(Cluster.gvk.api_version, "Cluster", "m1", annotations=annotations, spec=spec)
    )
    reported = {"kubernetesVersion": HOSTILE, "conditions": [condition("Ready")]}
    await client.update_status(Cluster.gvr, {**made, "status": reported})
    template = workload("Deployment", "web", 2, one_container("nginx"), namespace="default", annotations=annotations)
    template["spec"]["template"]["spec"]["containers"][0]["args"] = [HOSTILE]
    await client.create(DEPLOYMENTS, template)
    rules = policy("everything", selecting(name="web"), placement=placed("m1"))
    rules["metadata"]["annotations"] = annotations
    await client.create(PropagationPolicy.gvr, rules)
    await bind(client, template, annotations)
    scaled = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "Pods",
                "pods": {
                    "metric": {"name": HOSTILE.replace("/", "")},
                    "target": {"type": "AverageValue", "averageValue": "1"},
                },
            }
        ],
    }
    hpa = await client.create(
        FederatedHPA.gvr, kube_object(FederatedHPA.gvk.api_version, "FederatedHPA", "web", "default", spec=scaled)
    )
    state = {"currentReplicas": 1, "desiredReplicas": 1, "conditions": [condition("ScalingActive")]}
    await client.update_status(FederatedHPA.gvr, {**hpa, "status": state})


async def bind(client: Any, template: Obj, annotations: Obj) -> None:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web", "uid": "1"}
    marks = {
        **annotations,
        "propagationpolicy.karmada.io/name": "everything",
        "propagationpolicy.karmada.io/namespace": "default",
    }
    spec = {"resource": resource, "replicas": 2, "clusters": [{"name": "m1", "replicas": 2}]}
    binding = await client.create(
        ResourceBinding.gvr,
        kube_object(
            ResourceBinding.gvk.api_version,
            "ResourceBinding",
            "web-deployment",
            "default",
            annotations=marks,
            spec=spec,
        ),
    )
    reports = [{"clusterName": "m1", "applied": False, "appliedMessage": HOSTILE, "health": "Unhealthy"}]
    status = {"aggregatedStatus": reports, "conditions": [condition("Scheduled"), condition("FullyApplied")]}
    await client.update_status(ResourceBinding.gvr, {**binding, "status": status})
    await client.create(NAMESPACES, kube_object("v1", "Namespace", "karmada-es-m1"))
    work = kube_object(
        Work.gvk.api_version, "Work", "web-769fdd6f4b", "karmada-es-m1",
        annotations=annotations, spec={"workload": {"manifests": [template]}},
    )  # fmt: skip
    await client.create(Work.gvr, work)
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    event = kube_object("v1", "Event", "hostile", "default") | {
        "involvedObject": about, "reason": HOSTILE, "message": HOSTILE, "type": "Warning", "action": HOSTILE,
        "source": {"component": HOSTILE, "host": HOSTILE},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1,
    }  # fmt: skip
    await client.create(EVENTS, event)


async def test_no_page_takes_a_text_for_markup(plane: DashboardPlane) -> None:
    await fill(plane)
    await plane.browser.log_in()
    waiting, seen, shown = deque(["/", "/search?q=" + "%3Cxss%20onload%3Dalert(1)%3E"]), set[str](), 0
    while waiting and len(seen) < _MOST_PAGES:
        path = waiting.popleft().split("#")[0]
        if path in seen or path.startswith(("/static", "/vendor", "/logout")):
            continue
        seen.add(path)
        answer = await plane.browser.get(path)
        if not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        page = Page(answer.text)
        assert page.broken == [], path
        shown += "<xss" in unescape(answer.text)
        waiting.extend(page.links)
    assert shown >= 10, sorted(seen)

"""A workload that scales by its load over two clusters, from its manifests to the end of the load.

Once by CPU and once by a custom metric, each as a user does it: with kubectl and karmadactl, a Service that reaches the
pods of both clusters, and load that `karmadactl sim load` puts on the members. Windows are short, since they are waited
for; loads are such that five replicas are exactly enough, so that no moment has to be caught.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from karmada.api.autoscaling import FederatedHPA
from karmada.api.work import ResourceBinding
from karmada.kube.objects.gvrs import CRDS, DEPLOYMENTS, SLICES
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from tests.e2e.places import Place
from tests.e2e.propagating import SERVICES, Propagation, cluster_policy, deployment, policy, replicas, selector
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e
BOTH = ("member1", "member2")
POD_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
HTTP_REQUESTS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/http_requests"
EXCHANGED = ("serviceexports.multicluster.x-k8s.io", "serviceimports.multicluster.x-k8s.io")
COLUMNS = ["NAME", "REFERENCE-KIND", "REFERENCE-NAME", "MINPODS", "MAXPODS", "REPLICAS", "AGE"]
WINDOW = {"stabilizationWindowSeconds": 1}


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    """Both members have the kinds by which services are exchanged."""
    policies = [
        cluster_policy(
            name.split(".")[0].removesuffix("s") + "-policy",
            [{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": name}],
            list(BOTH),
        )
        for name in EXCHANGED
    ]
    three_members.apply(*policies)
    for name in EXCHANGED:
        three_members.until_everywhere(CRDS, name, bool, *BOTH, namespace="")
    yield three_members
    three_members.delete(*policies)


class Walkthrough:
    """One replica of a Deployment, divided evenly between both members, its Service, and its autoscaler."""

    def __init__(self, fleet: Propagation, container: Obj, service: str, metric: Obj) -> None:
        self.fleet = fleet
        self.template = deployment(container.pop("app"))
        self.template["spec"]["template"]["spec"]["containers"] = [container]
        self.name: str = self.template["metadata"]["name"]
        self.service = kube_object("v1", "Service", service, labels={"app": self.name}) | {
            "spec": {"selector": {"app": self.name}, "ports": [{"port": 80, "targetPort": 8080}]}
        }
        self.workload = [self.template, self.service, self._divided()]
        self.autoscaler = kube_object(FederatedHPA.gvk.api_version, "FederatedHPA", self.name) | {
            "spec": {
                "scaleTargetRef": selector(self.template),
                "minReplicas": 1,
                "maxReplicas": 10,
                "behavior": {"scaleDown": WINDOW, "scaleUp": WINDOW},
                "metrics": [metric],
            },
        }
        self.exchange = self._exported_from_both_and_imported_in_member1(service)
        self._sim = Karmadactl(fleet.sims.home, fleet.plane.kubeconfig, "sim", "--data-dir", str(fleet.sims.folder))

    def _divided(self) -> Obj:
        weights = [{"targetCluster": {"clusterNames": [member]}, "weight": 1} for member in BOTH]
        placement = {
            "clusterAffinity": {"clusterNames": list(BOTH)},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": weights},
            },
        }
        return policy("propagation", [selector(self.template), selector(self.service)], placement=placement)

    @staticmethod
    def _exported_from_both_and_imported_in_member1(service: str) -> list[Obj]:
        head = {"apiVersion": "multicluster.x-k8s.io/v1alpha1", "metadata": {"name": service}}
        exported: Obj = {**head, "kind": "ServiceExport"}
        ports = [{"port": 80, "protocol": "TCP"}]
        imported: Obj = {**head, "kind": "ServiceImport", "spec": {"type": "ClusterSetIP", "ports": ports}}
        return [
            exported,
            policy("serve-export-policy", [selector(exported)], list(BOTH)),
            imported,
            policy("serve-import-policy", [selector(imported)], ["member1"]),
        ]

    # steps

    def deploy(self) -> None:
        self.fleet.apply(*self.workload)
        self.until_divided(1)
        assert self.shown("svc", self.service["metadata"]["name"]) == [*BOTH]

    def autoscale(self) -> None:
        """A FederatedHPA that has read the metric and is satisfied with one replica."""
        self.fleet.apply(self.autoscaler)
        self.fleet.here.until(FederatedHPA.gvr, self.name, lambda hpa: _active(hpa) == "ValidMetricFound")
        header, row = self.fleet.kubectl("get", "fhpa", self.name).lines
        assert header.split() == COLUMNS
        assert row.split()[:-1] == [self.name, "Deployment", self.name, "1", "10", "1"]

    def share(self) -> str:
        """The name of the Service in member1 that reaches the pods of both."""
        derived = f"derived-{self.service['metadata']['name']}"
        self.fleet.apply(*self.exchange)
        self.fleet.members["member1"].until(SERVICES, derived)
        assert self.shown("svc", derived) == ["member1"]
        return derived

    def load(self, *amount: str) -> None:
        for member in BOTH:
            self._sim("load", member, f"deployment/{self.name}", *amount)

    def until_divided(self, *wanted: int) -> None:
        """This many replicas in one member and in the other, ready, as karmadactl shows their pods.

        Which of the two has more is up to the scheduler.
        """

        def ready(found: Obj) -> bool:
            return bool(replicas(found) == found["status"].get("readyReplicas") == sum(wanted))

        def divided() -> bool:
            return sorted(Counter(self.shown("pods", "-l", f"app={self.name}")).values()) == sorted(wanted)

        self.fleet.here.until(DEPLOYMENTS, self.name, ready)
        eventually_blocking(divided)

    def shown(self, *what: str) -> list[str]:
        """The members in the table that karmadactl prints, one for each row."""
        header, *rows = self.fleet.ctl("get", *what).lines
        assert header.split()[:2] == ["NAME", "CLUSTER"]
        return sorted(cluster for _, cluster, *_ in map(str.split, rows) if cluster != "Karmada")

    def until_reached(self, derived: str) -> None:
        """The Service of member1 leads to the pods of both clusters."""
        service = self.service["metadata"]["name"]

        def all_of_them() -> bool:
            own = [addresses(self.fleet.members[member], service) for member in BOTH]
            return all(own) and addresses(self.fleet.members["member1"], derived) == set().union(*own)

        eventually_blocking(all_of_them)

    def until_rescaled(self, *messages: str) -> None:
        events = [("Normal", "SuccessfulRescale", "federatedHPA-controller", message) for message in messages]
        self.fleet.until_emitted(self.name, *events)

    def end(self) -> None:
        for member in BOTH:
            self._sim("load", member, f"deployment/{self.name}", "--clear", check=False)
        self.fleet.delete(self.autoscaler, *self.exchange, *self.workload)
        for member in BOTH:
            for kind, name in ((DEPLOYMENTS, self.name), (SERVICES, self.service["metadata"]["name"])):
                self.fleet.members[member].until_gone(kind, name)
        self.fleet.here.until_gone(ResourceBinding.gvr, f"{self.name}-deployment")


def _active(hpa: Obj) -> str:
    conditions = {one["type"]: one["reason"] for one in (hpa.get("status") or {}).get("conditions") or ()}
    return conditions.get("ScalingActive", "")


def addresses(place: Place, service: str) -> set[str]:
    return {
        address
        for found in place.list(SLICES, "default", f"kubernetes.io/service-name={service}")
        for endpoint in found.get("endpoints") or ()
        for address in endpoint["addresses"]
    }


def raw(fleet: Propagation, path: str) -> list[Obj]:
    items: list[Obj] = json.loads(fleet.kubectl("get", "--raw", path).out)["items"]
    return items


def test_replicas_of_two_clusters_follow_their_cpu_load(fleet: Propagation) -> None:
    small = {"cpu": "25m", "memory": "64Mi"}
    container = {"app": "nginx", "name": "nginx", "image": "nginx", "resources": {"requests": small, "limits": small}}
    tenth = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 10}}
    nginx = Walkthrough(fleet, container, "nginx-service", {"type": "Resource", "resource": tenth})
    try:
        nginx.load("cpu=1m")
        nginx.deploy()
        nginx.autoscale()
        derived = nginx.share()

        nginx.load("total-cpu=6250u")
        nginx.until_divided(3, 2)
        nginx.until_reached(derived)
        used = {row.split()[0]: row.split()[1] for row in fleet.kubectl("top", "pods", "--no-headers").lines}
        measured = raw(fleet, f"{POD_METRICS}?labelSelector=app%3Dnginx")
        assert {one["metadata"]["name"] for one in measured} <= set(used)
        clusters = [one["metadata"]["annotations"]["resource.karmada.io/query-from-cluster"] for one in measured]
        assert sorted(Counter(clusters).values()) == [2, 3]

        nginx.load("cpu=1m")
        nginx.until_divided(1)
        nginx.until_rescaled(
            "New size: 5; reason: cpu resource utilization (percentage of request) above target",
            "New size: 1; reason: All metrics below target",
        )
    finally:
        nginx.end()


def test_replicas_of_two_clusters_follow_a_custom_metric(fleet: Propagation) -> None:
    container = {
        "app": "sample-app",
        "name": "metrics-provider",
        "image": "luxas/autoscale-demo:v0.1.2",
        "ports": [{"name": "http", "containerPort": 8080}],
    }
    target = {"averageValue": "700m", "type": "Value"}
    metric = {"type": "Pods", "pods": {"metric": {"name": "http_requests"}, "target": target}}
    app = Walkthrough(fleet, container, "sample-app", metric)
    try:
        app.load("--metric", "http_requests=66m")
        app.deploy()
        [value] = raw(fleet, f"{HTTP_REQUESTS}?selector=app%3Dsample-app")
        assert (value["metric"], value["value"]) == ({"name": "http_requests", "selector": None}, "66m")
        app.autoscale()
        derived = app.share()

        app.load("--metric", "http_requests=1750m")
        app.until_divided(3, 2)
        app.until_reached(derived)
        values = raw(fleet, f"{HTTP_REQUESTS}?labelSelector=app%3Dsample-app")
        assert len(values) == 5
        assert sum(Quantity.parse(one["value"]).nano for one in values) == pytest.approx(3.5e9)

        app.load("--metric", "http_requests=66m")
        app.until_divided(1)
        app.until_rescaled(
            "New size: 5; reason: pods metric http_requests above target",
            "New size: 1; reason: All metrics below target",
        )
    finally:
        app.end()

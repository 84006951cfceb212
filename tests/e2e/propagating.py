"""A control plane with three members, and ways to say what is in each of them.

The members differ in all that placements and overrides can select them by: member1 and member2 share a region, member1
and member3 a provider and a tier, every one has its own zone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from karmada.api.well_known import binding_name, execution_namespace, work_name
from karmada.api.work import ClusterResourceBinding, ResourceBinding, Work
from karmada.kube.objects import meta
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import EVENTS
from karmada.kube.objects.types import Obj
from tests.e2e.fleets import QUICK, Fleet, connected
from tests.e2e.places import Place
from tests.support.eventually import eventually_blocking
from tests.support.karmadactl import Karmadactl
from tests.support.objects import kube_object
from tests.support.programs import Result
from tests.support.workloads import one_container, workload

T = TypeVar("T")
CONFIG_MAPS, SECRETS, SERVICES, PODS = (GVR("", "v1", name) for name in ("configmaps", "secrets", "services", "pods"))
GUESTBOOKS = GVR("webapp.my.domain", "v1", "guestbooks")
BINDINGS, CLUSTER_BINDINGS, WORKS = ResourceBinding.gvr, ClusterResourceBinding.gvr, Work.gvr
MANAGED = "karmada.io/managed"


class Standing(NamedTuple):
    """What a member can be selected by."""

    region: str
    zone: str
    provider: str
    labels: tuple[str, ...]


MEMBERS = {
    "member1": Standing("r1", "z1", "p1", ("env=production", "tier=a")),
    "member2": Standing("r1", "z2", "p2", ("env=production", "tier=b")),
    "member3": Standing("r2", "z3", "p1", ("env=staging", "tier=a")),
}


class Propagation(Fleet):
    """`here` is the control plane, `members` are what its name says."""

    here: Place
    members: dict[str, Place]

    def open(self, names: Iterable[str]) -> None:
        self.here = Place(self._background, self._client)
        self.members = {
            name: Place(self._background, self._background.enter(connected(self.sims.kubeconfig, name)))
            for name in names
        }

    def apply(self, *objects: Obj, namespace: str = "default") -> Result:
        """All of them, as kubectl does, in this process: a kubectl takes ten times the CPU time."""
        return self.ours("-n", namespace, "apply", "-f", "-", stdin=as_text(*objects))

    def kubectl_apply(self, *objects: Obj, namespace: str = "default") -> Result:
        """All of them with one kubectl."""
        return self.kubectl("-n", namespace, "apply", "-f", "-", stdin=as_text(*objects))

    def delete(self, *objects: Obj, namespace: str = "default") -> Result:
        words = ("-n", namespace, "delete", "--ignore-not-found", "-f", "-")
        return self.ours(*words, stdin=as_text(*objects))

    def binding(self, kind: str, name: str, namespace: str = "default") -> Obj | None:
        return self.here.get(*binding_of(kind, name, namespace))

    def until_bound(self, kind: str, name: str, *clusters: str, namespace: str = "default") -> Obj:
        """The binding, once all of these clusters and no others have what it is about."""
        gvr, called, where = binding_of(kind, name, namespace)
        return self.here.until(gvr, called, lambda binding: is_in(binding, *clusters), namespace=where)

    def work(self, cluster: str, kind: str, name: str, namespace: str = "default") -> Obj | None:
        return self.here.get(WORKS, work_name(kind, name, namespace), execution_namespace(cluster))

    def until_work(
        self, cluster: str, kind: str, name: str, check: Callable[[Obj], Any] = bool, namespace: str = "default"
    ) -> Obj:
        return self.here.until(WORKS, work_name(kind, name, namespace), check, execution_namespace(cluster))

    def until_everywhere(
        self, kind: GVR, name: str, check: Callable[[Obj], Any] = bool, *clusters: str, namespace: str = "default"
    ) -> list[Obj]:
        return [self.members[cluster].until(kind, name, check, namespace) for cluster in clusters]

    def until_empty(self, cluster: str) -> None:
        """No pod is left in a member's default namespace: those of a test before may still be going."""

        def left() -> list[Obj]:
            return [pod["metadata"] | pod["status"] for pod in self.members[cluster].list(PODS, "default")]

        eventually_blocking(lambda: not left() or _fail(f"pods in {cluster}: {left()}"))

    def events(self, name: str, namespace: str = "default") -> set[tuple[str, str, str, str]]:
        """(type, reason, component, message) of the events of an object, without their counts."""
        return {
            (event["type"], event["reason"], event["source"]["component"], event["message"])
            for event in self.here.list(EVENTS, namespace)
            if event["involvedObject"]["name"] == name
        }

    def until_emitted(self, name: str, *wanted: tuple[str, str, str, str], namespace: str = "default") -> None:
        def missing() -> set[tuple[str, str, str, str]]:
            return set(wanted) - self.events(name, namespace)

        eventually_blocking(
            lambda: not missing() or _fail(f"not emitted: {missing()}; emitted: {self.events(name, namespace)}")
        )


def _fail(message: str) -> bool:
    raise AssertionError(message)


@contextmanager
def propagation(
    root: Path, kubectl: str, members: Iterable[str] = MEMBERS, flags: tuple[str, ...] = QUICK
) -> Iterator[Propagation]:
    """A fleet with these members joined and ready; nothing unexpected may have happened in it at the end."""
    names = list(members)
    with Propagation(root, kubectl, flags) as fleet:
        fleet.create(*names)
        join = Karmadactl(fleet.sims.home, fleet.plane.kubeconfig, "join")
        way = ("--cluster-kubeconfig", str(fleet.sims.kubeconfig))
        for name in names:
            standing = MEMBERS[name]
            join(
                *(name, *way, "--cluster-context", name),
                *("--cluster-region", standing.region, "--cluster-zones", standing.zone),
                *("--cluster-provider", standing.provider),
            )
            fleet.label(name, *standing.labels)
        fleet.until_ready(*names)
        fleet.open(names)
        yield fleet
        assert "Traceback" not in fleet.plane.log(), fleet.plane.log()


# objects


def as_text(*objects: Obj) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def deployment(name: str, replicas: int = 1, image: str = "nginx:1.25", labels: dict[str, str] | None = None) -> Obj:
    return workload("Deployment", name, replicas, one_container(image), labels={"app": name, **(labels or {})})


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Obj:
    metadata: Obj = {"name": name}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def selector(obj: Obj) -> Obj:
    """That selects the object by its name."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}


def policy(name: str, selectors: list[Obj], clusters: list[str] | None = None, **spec: Any) -> Obj:
    """A PropagationPolicy; with `clusters` it names them, else `placement` is in the spec, or any will do."""
    spec.setdefault("placement", {"clusterAffinity": {"clusterNames": clusters}} if clusters is not None else {})
    return kube_object(
        "policy.karmada.io/v1alpha1", "PropagationPolicy", name, spec={"resourceSelectors": selectors, **spec}
    )


def cluster_policy(name: str, selectors: list[Obj], clusters: list[str] | None = None, **spec: Any) -> Obj:
    return {**policy(name, selectors, clusters, **spec), "kind": "ClusterPropagationPolicy"}


def override(name: str, selectors: list[Obj], *rules: Obj) -> Obj:
    return kube_object("policy.karmada.io/v1alpha1", "OverridePolicy", name) | {
        "spec": {"resourceSelectors": selectors, "overrideRules": list(rules)}
    }


def rule(target: Obj | None = None, **overriders: Any) -> Obj:
    return {**({"targetCluster": target} if target is not None else {}), "overriders": overriders}


def in_clusters(*names: str) -> Obj:
    return {"clusterNames": list(names)}


# looking


def binding_of(kind: str, name: str, namespace: str) -> tuple[GVR, str, str]:
    return (BINDINGS if namespace else CLUSTER_BINDINGS), binding_name(kind, name), namespace


def is_in(binding: Obj, *clusters: str) -> bool:
    status = binding.get("status") or {}
    items = status.get("aggregatedStatus") or ()
    return {target["name"] for target in binding["spec"].get("clusters") or ()} == set(clusters) and (
        {item["clusterName"] for item in items if item.get("applied")} == set(clusters)
        and meta.has_condition(status.get("conditions"), "FullyApplied")
    )


def image(obj: Obj) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


def replicas(obj: Obj) -> Any:
    return obj["spec"]["replicas"]


def manifest(work: Obj) -> Obj:
    found: Obj = work["spec"]["workload"]["manifests"][0]
    return found

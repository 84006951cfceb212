"""The page on services, as a user follows it: its manifests with real kubectl, its effect as kube-proxy sees it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada.kube.objects import meta
from karmada.kube.objects.gvrs import SLICES
from tests.e2e.places import Place
from tests.e2e.propagating import SERVICES, Propagation, deployment, policy, selector
from tests.support.eventually import eventually_blocking
from tests.support.objects import kube_object

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs/services.md"


def blocks() -> list[str]:
    """The manifests of the page: CRDs, export and import, MultiClusterService."""
    return re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def fleet(three_members: Propagation) -> Iterator[Propagation]:
    """With the Deployment of the page in member1; its Service is in the control plane."""
    serve = deployment("serve", replicas=2)
    service = kube_object(
        "v1", "Service", "serve", spec={"selector": {"app": "serve"}, "ports": [{"port": 80, "targetPort": 8080}]}
    )
    here = {"clusterAffinity": {"clusterNames": ["member1"]}}
    objects = [serve, policy("serve", [selector(serve)], placement=here), service]
    three_members.apply(*objects)
    yield three_members
    three_members.delete(*objects)
    three_members.members["member1"].until_gone(SERVICES, "serve")


def addresses(place: Place, service: str, *, of_other_clusters: bool = False) -> set[str]:
    return {
        address
        for found in place.list(SLICES, "default", f"kubernetes.io/service-name={service}")
        if not of_other_clusters or "endpointslice.karmada.io/provision-cluster" in meta.annotations(found)
        for endpoint in found.get("endpoints") or ()
        for address in endpoint["addresses"]
    }


def test_a_service_is_exported_and_imported(fleet: Propagation) -> None:
    crds, exporting, *_ = blocks()
    owner = policy("service", [{"apiVersion": "v1", "kind": "Service", "name": "serve"}])
    owner["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["member1"]}}
    fleet.apply(owner)
    fleet.ours("apply", "-f", "-", stdin=crds)
    fleet.ours("apply", "-f", "-", stdin=exporting)
    there, here = fleet.members["member1"], fleet.members["member2"]
    eventually_blocking(lambda: len(addresses(there, "serve")) == 2)
    here.until(SERVICES, "derived-serve")
    eventually_blocking(lambda: addresses(here, "derived-serve") == addresses(there, "serve"))
    fleet.kubectl("scale", "deployment", "serve", "--replicas=3")
    eventually_blocking(lambda: len(addresses(there, "serve")) == 3)
    eventually_blocking(lambda: addresses(here, "derived-serve") == addresses(there, "serve"))
    fleet.ours("delete", "serviceexport", "serve")
    eventually_blocking(lambda: not addresses(here, "derived-serve"))
    fleet.ours("delete", "--ignore-not-found", "-f", "-", stdin=exporting)
    here.until_gone(SERVICES, "derived-serve")
    fleet.delete(owner)
    fleet.ours("delete", "-f", "-", stdin=crds)


def test_a_service_is_shared_by_a_multi_cluster_service(fleet: Propagation) -> None:
    _, _, sharing, _ = blocks()
    fleet.ours("apply", "-f", "-", stdin=sharing)
    fleet.kubectl("wait", "--for=condition=EndpointSliceDispatched", "mcs/serve", "--timeout=100s")
    there, here = fleet.members["member1"], fleet.members["member2"]
    here.until(SERVICES, "serve")
    eventually_blocking(
        lambda: (
            addresses(there, "serve") and addresses(here, "serve", of_other_clusters=True) == addresses(there, "serve")
        )
    )
    fleet.ours("delete", "mcs", "serve")
    eventually_blocking(lambda: not addresses(here, "serve", of_other_clusters=True))

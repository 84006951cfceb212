"""A cluster registers as the documents show it: kubectl in the cluster and in the control plane, an agent between."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from karmada.api.cluster import Cluster
from tests.e2e.manifests import propagated_web
from tests.e2e.registering import NAME, Registering, registering, wait
from tests.support.cases import cases
from tests.support.eventually import eventually_blocking

pytestmark = pytest.mark.e2e
WEB = propagated_web("m1")


@pytest.fixture(scope="module", name="registering")
def new_cluster(tmp_path_factory: pytest.TempPathFactory, kubectl_path: str) -> Iterator[Registering]:
    with registering(tmp_path_factory.mktemp("register"), kubectl_path) as found:
        yield found


def test_a_cluster_registers_works_and_leaves_without_a_trace(registering: Registering) -> None:
    fleet, member, karmada = registering.fleet, registering.member, registering.karmada
    before = registering.names()
    result = registering.register()
    assert result.lines[-1] == f"cluster({NAME}) is joined successfully"
    try:
        fleet.until_ready(NAME)
    except AssertionError as error:
        raise AssertionError(registering.agent_log()) from error
    row = karmada("get", "clusters").lines[1].split()
    assert (row[0], row[2], row[3]) == (NAME, "Pull", "True")

    registering.propagate(WEB, "deployment/web")
    wait(member, "deployment/web", "--for=condition=Available")
    wait(karmada, "deployment/web", "--for=jsonpath={.status.readyReplicas}=2")

    refused = karmada("karmada", "join", "again", "--cluster-kubeconfig", str(registering.config), check=False)
    assert (refused.code, "or the cluster name again has been registered" in refused.err) == (1, True)
    again = registering.register()
    assert "\t[ERROR]: karmada-system/karmada-agent Deployment already exists" in again.out

    karmada("delete", "-f", "-", stdin=WEB)
    leaving = ["karmada", "unregister", NAME, "--cluster-kubeconfig", str(registering.config)]
    left = member(*leaving, "--karmada-config", str(fleet.plane.kubeconfig), timeout=120)
    assert left.out == f"cluster({NAME}) is unregistered successfully\n"
    assert fleet.get(Cluster.gvr, NAME) is None
    before["member"] |= {"Namespace /karmada-system", "ServiceAccount karmada-system/default"}

    def no_trace() -> bool:
        after = registering.names()
        assert {side: after[side] ^ before[side] for side in before if after[side] != before[side]} == {}
        return True

    eventually_blocking(no_trace)


def test_a_cluster_that_leaves_takes_what_was_propagated_with_it(registering: Registering) -> None:
    member, karmada = registering.member, registering.karmada
    registering.join()
    registering.propagate(WEB, "deployment/web")
    left = member("karmada", "unregister", NAME, "--cluster-kubeconfig", str(registering.config), timeout=120)
    assert "ClusterRole/system:karmada:m1:agent\n" in left.err
    for namespace in ("default", "karmada-system"):
        assert member("get", "deployments", "-n", namespace, "-o", "name").out == ""
    karmada("delete", "-f", "-", stdin=WEB)


def test_a_deleted_cluster_is_emptied_by_its_agent(registering: Registering) -> None:
    """The agent's rights last as long as it has something to clean up."""
    member, karmada = registering.member, registering.karmada
    registering.join()
    registering.propagate(WEB, "deployment/web")
    karmada("delete", "cluster", NAME, "--timeout=100s")
    assert member("get", "deployments", "-o", "name").out == ""
    karmada("delete", "-f", "-", stdin=WEB)
    member("karmada", "unregister", NAME, "--cluster-kubeconfig", str(registering.config), timeout=120)


@cases(
    (
        "--discovery-token-ca-cert-hash",
        f"sha256:{'0' * 64}",
        "cluster CA found in cluster-info ConfigMap is",
    ),
    ("--token", "abcdef.0123456789abcdef", "could not find a JWS signature in the cluster-info ConfigMap"),
)
def test_what_is_not_proven_is_refused_and_nothing_is_left(
    flag: str, value: str, message: str, registering: Registering
) -> None:
    before = json.dumps({side: sorted(names) for side, names in registering.names().items()})
    words = registering.printed()
    words[words.index(flag) + 1] = value
    refused = registering.member(*words, "--discovery-timeout=5s", check=False)
    assert refused.code == 1
    assert refused.err.startswith(f"error: couldn't validate the identity of the API Server: {message}")
    assert json.dumps({side: sorted(names) for side, names in registering.names().items()}) == before

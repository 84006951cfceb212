"""Which FlowSchema a request falls under."""

from __future__ import annotations

from karmada.kube.server.auth.rbac import AuthzAttributes
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.control import FlowControl
from karmada.kube.server.flowcontrol.matching import compiled
from tests.support.cases import cases

AUTHENTICATED = ("system:authenticated",)
ADMIN = User("root", groups=("system:masters", *AUTHENTICATED))
ANN = User("ann", groups=AUTHENTICATED)
NOBODY = User("system:anonymous", groups=("system:unauthenticated",))
NODE = User("system:node:n1", groups=("system:nodes", *AUTHENTICATED))
SYSTEM = User("system:serviceaccount:kube-system:sync", groups=("system:serviceaccounts", *AUTHENTICATED))
ACCOUNT = User("system:serviceaccount:team:bot", groups=("system:serviceaccounts", *AUTHENTICATED))
PODS = AuthzAttributes("list", "", "v1", "pods", namespace="team")
LEASE = AuthzAttributes("update", "coordination.k8s.io", "v1", "leases", namespace="kube-system", name="x")
READY = AuthzAttributes("get", path="/readyz", is_resource=False)
VERSION = AuthzAttributes("get", path="/version", is_resource=False)
NODE_STATUS = AuthzAttributes("patch", "", "v1", "nodes", "status", name="n1")


@cases(
    (ADMIN, PODS, "exempt", "exempt", ""),
    (NOBODY, READY, "probes", "exempt", ""),
    (ANN, PODS, "global-default", "global-default", "ann"),
    (ANN, VERSION, "global-default", "global-default", "ann"),
    (NOBODY, VERSION, "global-default", "global-default", "system:anonymous"),
    (ANN, LEASE, "global-default", "global-default", "ann"),
    (SYSTEM, LEASE, "system-leader-election", "leader-election", SYSTEM.name),
    (SYSTEM, LEASE._replace(namespace="team"), "workload-leader-election", "leader-election", SYSTEM.name),
    (SYSTEM, PODS, "kube-system-service-accounts", "workload-high", "team"),
    (ACCOUNT, PODS, "service-accounts", "workload-low", ACCOUNT.name),
    (NODE, PODS, "system-nodes", "system", NODE.name),
    (NODE, NODE_STATUS, "system-node-high", "node-high", NODE.name),
)
def test_the_usual_schemas(user: User, request_: AuthzAttributes, schema: str, level: str, flow: str) -> None:
    found = FlowControl().classify(user, request_)
    assert (found.schema.name, found.level.name, found.flow.distinguisher) == (schema, level, flow)


def test_schemas_are_tried_by_precedence_then_name_and_catch_all_last() -> None:
    def schema(name: str, precedence: int | None) -> dict[str, object]:
        return {"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}}

    found = compiled([schema("catch-all", 1), schema("b", 5), schema("a", 5), schema("late", None), schema("z", 1)])
    assert [one.name for one in found] == ["z", "a", "b", "late", "catch-all"]

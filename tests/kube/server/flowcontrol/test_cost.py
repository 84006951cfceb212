"""The seats of a request by what it looks at, matches and writes."""

from __future__ import annotations

from karmada.kube.kinds.inventory import builtin_resources
from karmada.kube.objects.doc import Doc
from karmada.kube.schema.builtin import Definitions
from karmada.kube.server.auth.user import User
from karmada.kube.server.flowcontrol.cost import MOST, actual, estimated, reads_many
from karmada.kube.server.http.request import Query, Request, parse_path
from karmada.kube.server.http.results import ListResult
from tests.support.cases import cases

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
SELECTOR = "labelSelector=" + ",".join(f"!z{number}" for number in range(64))


def request(query: str = "", accept: str = "application/json", path: str = CONFIGMAPS, method: str = "GET") -> Request:
    parsed = Query.parse(query)
    return Request(method, parse_path(method, path, parsed), parsed, {"Accept": accept}, User("ann"))


@cases(
    (request(), 100, 1),
    (request(), 4_000, 2),
    (request(), 100_000, MOST),
    (request("limit=500"), 100_000, 1),
    (request(accept=TABLE), 4_000, MOST),
    (request(accept=TABLE), 400, 2),
    (request("limit=500", accept=TABLE), 100_000, 2),
    (request(accept="application/vnd.kubernetes.protobuf"), 800, 3),
    (request(accept="application/yaml"), 80, 3),
    (request(SELECTOR), 100, 2),
    (request(SELECTOR), 4_000, MOST),
    (request(f"{SELECTOR}&limit=1"), 4_000, MOST),
    (request(f"watch=1&{SELECTOR}"), 4_000, MOST),
)
def test_what_many_objects_cost_is_estimated(made: Request, count: int, seats: int) -> None:
    assert reads_many(made)
    assert estimated(made, count) == seats


@cases(
    request(path=f"{CONFIGMAPS}/a"),
    request("watch=1&resourceVersion=7"),
    request(method="POST"),
    request("fieldSelector=metadata.name=a"),
    request(path="/readyz"),
)
def test_what_reads_one_object_or_none_is_one_seat(made: Request) -> None:
    assert not reads_many(made)


@cases(
    (request(), 100, 1),
    (request(accept=TABLE), 100, 1),
    (request(accept=TABLE), 200_000, 3),
    (request(accept="application/yaml"), 100, 1),
    (request(accept="application/yaml"), 200_000, MOST),
    (request(SELECTOR), 100, 2),
)
def test_what_a_list_has_cost_is_known_by_its_objects(made: Request, size: int, seats: int) -> None:
    resource = next(one for one in builtin_resources(Definitions.load()) if one.plural == "configmaps")
    entries = [Doc.of({"metadata": {"name": f"a{number}"}, "data": {"text": "x" * size}}) for number in range(10)]
    assert actual(made, ListResult(resource, {}, entries), 100) == seats


def test_a_request_that_was_refused_has_cost_what_it_matched() -> None:
    assert actual(request(accept=TABLE), None, 4_000) == 1
    assert actual(request(SELECTOR), None, 100) == 2

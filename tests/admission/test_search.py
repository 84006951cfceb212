from __future__ import annotations

from karmada.admission.search import validate
from karmada.kube.objects.types import Obj
from tests.support.cases import cases

SELECTOR = {"matchExpressions": [{"key": "region", "operator": "Exists"}]}
NO_URL = "must be a valid http or https URL with non-empty scheme and host"


@cases(
    ({}, []),
    ({"targetCluster": {}, "resourceSelectors": [{"apiVersion": "apps/v1"}, {"namespace": "default"}]}, []),
    (
        {"targetCluster": {"fieldSelector": SELECTOR}},
        [
            'spec.targetCluster.fieldSelector: Invalid value: {"matchExpressions":[{"key":"region","operator":'
            '"Exists"}]}: unsupported operator "Exists", must be In or NotIn'
        ],
    ),
    (
        {"resourceSelectors": [{"apiVersion": "a/b/c"}]},
        ['spec.resourceSelectors[0].apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
    ),
    (
        {"backendStore": {"openSearch": {"addresses": ["https://a:9200", "a", "ftp://a", "http://", "http://["]}}},
        [
            f'spec.backendStore.openSearch.addresses[{index}]: Invalid value: "{address}": {NO_URL}'
            for index, address in enumerate(["a", "ftp://a", "http://", "http://["], start=1)
        ],
    ),
)
def test_a_registry_is_refused_for(spec: Obj, texts: list[str]) -> None:
    assert [str(error) for error in validate({"metadata": {"name": "r"}, "spec": spec})] == texts


def test_a_namespace_has_a_name() -> None:
    [error] = validate({"metadata": {"name": "r"}, "spec": {"resourceSelectors": [{"namespace": "A"}]}})
    assert str(error).startswith('spec.resourceSelectors[0].namespace: Invalid value: "A": a lowercase RFC 1123 label')

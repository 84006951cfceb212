"""Names, mapping and documents in OpenSearch."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.search.opensearch.documents import INDEX, document, index_name, is_of
from tests.support.cases import cases

POD: Obj = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "u1",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
    },
    "spec": {"nodeName": "n1"},
    "data": {"left": "out"},
}


def test_there_is_an_index_for_each_kind() -> None:
    assert index_name("ReplicaSet") == "kubernetes-replicaset"


def test_a_document_has_metadata_with_its_cluster_and_spec_and_status_as_text() -> None:
    assert document(POD, "member1") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web"},
            "annotations": {"a": "b", "resource.karmada.io/cached-from-cluster": "member1"},
            "deletionTimestamp": None,
        },
        "spec": '{"nodeName":"n1"}',
        "status": "null",
    }


def test_what_an_object_lacks_is_null_or_empty() -> None:
    metadata = document({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, "m")["metadata"]
    assert (metadata["labels"], metadata["namespace"]) == (None, "")
    assert metadata["annotations"] == {"resource.karmada.io/cached-from-cluster": "m"}
    assert metadata["creationTimestamp"] == "0001-01-01T00:00:00Z"


def test_specs_and_labels_are_not_mapped_and_names_are_words_and_texts() -> None:
    assert INDEX["settings"]["index"] == {"number_of_shards": 1, "number_of_replicas": 0}
    fields = INDEX["mappings"]["properties"]
    assert fields["spec"] == fields["metadata"]["properties"]["labels"] == {"type": "object", "enabled": False}
    name = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    assert fields["metadata"]["properties"]["name"] == name
    assert fields["metadata"]["properties"]["ownerReferences"] == fields["apiVersion"] == {"type": "text"}


@cases(("member1", "", True), ("member2", "", False), ("member1", "apps", False))
def test_a_document_is_of_one_cluster_and_one_group(cluster: str, group: str, expected: bool) -> None:
    assert is_of(document(POD, "member1"), cluster, group) is expected


@cases(None, {}, {"metadata": None}, {"apiVersion": 3})
def test_documents_of_others_belong_to_no_cluster(odd: Obj) -> None:
    assert not is_of(odd, "member1", "")

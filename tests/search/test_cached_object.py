"""The bytes of cached objects: their form, and what readers get of them."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from karmada.api.well_known import CACHED_FROM_CLUSTER
from karmada.kube.objects.doc import Doc
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.search.cached_object import Form, stamped
from tests.support.cases import cases

POD = Form(GVK("", "v1", "Pod"))
BODY = b'"metadata":{"name":"a","resourceVersion":"7"},"spec":{"x":1}}'


@cases(
    b"{" + BODY,
    b'{"kind":"Pod","apiVersion":"v1",' + BODY,
    b'{"apiVersion":"v1","kind":"Pod",' + BODY,
    b'{"spec":{"x":1},"metadata":{"name":"a","resourceVersion":"7"}}',
    b'{ "kind": "Pod", "apiVersion": "v1", "metadata": {"name":"a","resourceVersion":"7"}, "spec": {"x": 1}}',
)
def test_objects_are_kept_in_one_form_however_they_were_sent(sent: bytes) -> None:
    assert POD.normal(sent) == b'{"apiVersion":"v1","kind":"Pod",' + BODY


names = st.sampled_from(["annotations", "resourceVersion", "metadata", "a", CACHED_FROM_CLUSTER, '"annotations":{'])
texts = st.dictionaries(names, st.one_of(names, st.just("7")), max_size=4)
metadata: st.SearchStrategy[Obj] = st.fixed_dictionaries(
    {"name": names, "resourceVersion": st.just("7")},
    optional={
        "labels": texts,
        "annotations": st.one_of(st.none(), texts),
        "managedFields": st.lists(st.fixed_dictionaries({"fieldsV1": st.just({"f:annotations": {".": {}}})})),
    },
)
objects = st.tuples(metadata, st.dictionaries(names, st.one_of(texts, names), max_size=3), st.booleans())


@given(objects, st.booleans())
def test_stamping_bytes_equals_stamping_the_object(parts: tuple[Obj, Obj, bool], spaced: bool) -> None:
    meta, spec, first = parts
    template = {"metadata": {"annotations": {"x": "y"}, "resourceVersion": "7"}}
    rest = {"spec": spec, "template": template}
    obj = {"metadata": meta, **rest} if first else {**rest, "metadata": meta}
    sent = orjson.dumps(obj, option=orjson.OPT_INDENT_2 if spaced else 0)
    cached = Doc("k", "", "a", 7, POD.normal(sent))
    result = orjson.loads(stamped(cached, "m1", "new"))
    annotations = {**(meta.get("annotations") or {}), CACHED_FROM_CLUSTER: "m1"}
    expected = {**obj, "metadata": {**meta, "annotations": annotations, "resourceVersion": "new"}}
    assert result == {"apiVersion": "v1", "kind": "Pod", **expected}
    assert orjson.loads(cached.at(9).raw)["metadata"]["resourceVersion"] == "9"


def test_the_uid_is_read_from_the_bytes() -> None:
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","uid":"u-1"}}'
    assert Doc("k", "", "a", 1, raw).uid == "u-1"

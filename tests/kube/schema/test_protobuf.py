"""Protobuf bodies become the objects that the same client would have sent as JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.decode import normalize
from karmada.kube.schema.protobuf import MAGIC, UnknownMessage, decode, encode
from karmada.kube.schema.walk import DecodeError
from karmada.kube.schema.wire import message_of, wire_table
from tests.support.arbitrary_objects import values
from tests.support.objects import kube_object

DEFS = Definitions.load()

# Bodies that kubectl 1.32 sent for its create commands, and what they say.
KUBECTL: dict[str, tuple[str, Obj]] = {
    "namespace": (
        "6b3873000a0f0a02763112094e616d65737061636512190a110a017812001a0022002a0032003800420012001a020a001a002200",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}},
    ),
    "deployment": (
        "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412bf010a260a0377656212001a0764656661756c74"
        "22002a003200380042005a0a0a0361707012037765621286010800120c0a0a0a0361707012037765621a6c0a1c0a0012"
        "001a0022002a003200380042005a0a0a036170701203776562124c122e0a056e67696e7812056e67696e782a00320a0a"
        "001000185022002a0042006a007200800100880100900100a201001a00320042004a0052005800600068008201008a01"
        "009a0100c2010022020a00280038001a0c0800100018002000280038001a002200",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}]}]},
                },
            },
        },
    ),
    "service": (
        "6b3873000a0d0a02763112075365727669636512700a260a0377656212001a0764656661756c7422002a003200380042"
        "005a0a0a03617070120377656212420a1b0a0738302d38303830120354435018502207080010903f1a002800120a0a03"
        "61707012037765621a002209436c757374657249503a00420052005a00600068001a020a001a002200",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
            "spec": {
                "ports": [{"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}],
                "selector": {"app": "web"},
                "type": "ClusterIP",
            },
        },
    ),
    "node port": (
        "6b3873000a0d0a027631120753657276696365126f0a240a026e7012001a0764656661756c7422002a00320038004200"
        "5a090a0361707012026e7012430a1e0a0738302d6874747012035443501850220a080110001a0468747470280012090a"
        "0361707012026e701a0022084e6f6465506f72743a00420052005a00600068001a020a001a002200",
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "np", "namespace": "default", "labels": {"app": "np"}},
            "spec": {
                "ports": [{"name": "80-http", "protocol": "TCP", "port": 80, "targetPort": "http"}],
                "selector": {"app": "np"},
                "type": "NodePort",
            },
        },
    ),
    "token request": (
        "6b3873000a280a1861757468656e7469636174696f6e2e6b38732e696f2f7631120c546f6b656e52657175657374121d"
        "0a100a0012001a0022002a00320038004200120320d8041a040a0012001a002200",
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 600},
            "status": {"token": ""},
        },
    ),
    "ingress": (
        "6b3873000a1f0a146e6574776f726b696e672e6b38732e696f2f76311207496e6772657373124d0a180a016912001a07"
        "64656661756c7422002a00320038004200122d1a2b0a07666f6f2e636f6d12200a1e0a1c0a042f626172120d220b0a03"
        "73766312040a0010501a0545786163741a020a001a002200",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "i", "namespace": "default"},
            "spec": {
                "rules": [
                    {
                        "host": "foo.com",
                        "http": {
                            "paths": [
                                {
                                    "path": "/bar",
                                    "backend": {"service": {"name": "svc", "port": {"number": 80}}},
                                    "pathType": "Exact",
                                }
                            ]
                        },
                    }
                ]
            },
        },
    ),
    "quota": (
        "6b3873000a130a027631120d5265736f7572636551756f7461124b0a180a017112001a0764656661756c7422002a0032"
        "0038004200122d0a0a0a0363707512030a01310a120a066d656d6f727912080a06313533364d690a0b0a04706f647312"
        "030a01321a001a002200",
        kube_object(
            "v1", "ResourceQuota", "q", "default", spec={"hard": {"cpu": "1", "memory": "1536Mi", "pods": "2"}}
        ),
    ),
    "budget": (
        "6b3873000a200a09706f6c6963792f76311213506f6444697372757074696f6e427564676574123d0a180a017012001a"
        "0764656661756c7422002a0032003800420012150a09080110001a0335302512080a060a01611201621a0a0800180020"
        "00280030001a002200",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "p", "namespace": "default"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        },
    ),
    "negative number": (
        "6b3873000a250a147363686564756c696e672e6b38732e696f2f7631120d5072696f72697479436c617373123a0a120a"
        "02706312001a0022002a0032003800420010fbffffffffffffffff0118002201642a14507265656d70744c6f77657250"
        "72696f726974791a002200",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "pc"},
            "value": -5,
            "description": "d",
            "preemptionPolicy": "PreemptLowerPriority",
        },
    ),
    "secret": (
        "6b3873000a0c0a027631120653656372657412240a180a017312001a0764656661756c7422002a003200380042001206"
        "0a01701201711a001a002200",
        kube_object("v1", "Secret", "s", "default", data={"p": "cQ=="}),
    ),
}


@pytest.mark.parametrize("name", KUBECTL)
def test_bodies_of_kubectl_are_understood(name: str) -> None:
    body, expected = KUBECTL[name]
    api_version, kind, obj = decode(bytes.fromhex(body), DEFS)
    assert (api_version, kind) == (expected["apiVersion"], expected["kind"])
    assert obj == expected


def test_protobuf_and_json_lead_to_the_same_object() -> None:
    _, _, obj = decode(bytes.fromhex(KUBECTL["deployment"][0]), DEFS)
    container = {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}]}
    from_json = kube_object(
        "apps/v1", "Deployment", "web", "default", labels={"app": "web"}, creationTimestamp=None
    ) | {
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }
    node = DEFS.node_for(GVK("apps", "v1", "Deployment"))
    assert node is not None
    normalize(node, obj)
    normalize(node, from_json)
    assert obj == from_json
    assert obj["spec"]["template"]["spec"]["containers"][0]["resources"] == {}


def chunk(number: int, data: bytes | str) -> bytes:
    content = data.encode() if isinstance(data, str) else data
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def body_of(api_version: str, kind: str, message: bytes) -> bytes:
    size = bytes([len(message) & 127 | 128, len(message) >> 7])
    return MAGIC + chunk(1, chunk(1, api_version) + chunk(2, kind)) + b"\x12" + size + message


def decoded(api_version: str, kind: str, message: bytes) -> Obj:
    obj = decode(body_of(api_version, kind, message), DEFS)[2]
    del obj["apiVersion"], obj["kind"]
    return obj


def test_delete_options_are_those_of_any_group() -> None:
    message = b"\x08\x00" + chunk(2, chunk(1, "uid-1")) + chunk(4, "Foreground") + chunk(5, "All")
    expected = {
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "uid-1"},
        "propagationPolicy": "Foreground",
        "dryRun": ["All"],
    }
    assert decoded("v1", "DeleteOptions", message) == expected
    assert decoded("work.karmada.io/v1alpha1", "DeleteOptions", message) == expected


def test_scale_has_its_replicas() -> None:
    message = chunk(1, chunk(1, "web")) + chunk(2, b"\x08\x05") + chunk(3, b"\x08\x00")
    assert decoded("autoscaling/v1", "Scale", message) == {
        "metadata": {"name": "web"},
        "spec": {"replicas": 5},
        "status": {"replicas": 0},
    }


def test_binding_and_eviction_are_known() -> None:
    target = chunk(1, "Node") + chunk(3, "n1")
    assert decoded("v1", "Binding", chunk(1, chunk(1, "p")) + chunk(2, target)) == {
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"},
    }
    message = chunk(1, chunk(1, "p")) + chunk(2, b"\x08\x1e")
    assert decoded("policy/v1", "Eviction", message) == {
        "metadata": {"name": "p"},
        "deleteOptions": {"gracePeriodSeconds": 30},
    }


def test_micro_times_keep_six_digits_and_empty_times_are_unset() -> None:
    moment = b"\x08\xc0\xc4\x07" + b"\x10\x80\xca\xb5\xee\x01"
    spec = chunk(1, "me") + chunk(3, moment) + chunk(4, b"\x08\x00\x10\x00")
    lease = decoded("coordination.k8s.io/v1", "Lease", chunk(2, spec))
    assert lease["spec"] == {"holderIdentity": "me", "acquireTime": "1970-01-02T10:17:36.500000Z"}


def test_inlined_messages_become_fields_of_their_parent() -> None:
    volume = chunk(1, "v") + chunk(2, chunk(19, chunk(1, chunk(1, "cfg"))).replace(b"\x9a", b"\x9a\x01", 1))
    pod = decoded("v1", "Pod", chunk(2, chunk(1, volume)))
    assert pod["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "cfg"}}]


def test_packed_numbers_are_a_list() -> None:
    context = b"\x22\x03\x01\x02\x03" + b"\x20\x04"
    pod = decoded("v1", "Pod", chunk(2, chunk(14, context)))
    assert pod["spec"]["securityContext"]["supplementalGroups"] == [1, 2, 3, 4]


def test_unknown_fields_of_every_wire_type_are_skipped() -> None:
    unknown = b"\xf8\x06\x96\x01" + b"\xf9\x06" + bytes(8) + b"\xfd\x06" + bytes(4) + b"\xfa\x06\x02ab"
    assert decoded("v1", "Namespace", unknown + chunk(1, unknown + chunk(1, "a"))) == {"metadata": {"name": "a"}}


def test_map_entries_may_lack_key_or_value() -> None:
    metadata = chunk(11, chunk(1, "a")) + chunk(11, chunk(2, "b"))
    assert decoded("v1", "ConfigMap", chunk(1, metadata))["metadata"] == {"labels": {"a": "", "": "b"}}


def test_lists_in_maps_are_wrapped() -> None:
    extra = chunk(5, chunk(1, "k") + chunk(2, chunk(1, "a") + chunk(1, "b")))
    review = decoded("authorization.k8s.io/v1", "SubjectAccessReview", chunk(2, extra))
    assert review["spec"] == {"extra": {"k": ["a", "b"]}}


def test_a_body_without_a_kind_takes_the_expected_one() -> None:
    body = MAGIC + chunk(2, chunk(1, chunk(1, "a")))
    assert decode(body, DEFS, GVK("", "v1", "Namespace"))[2]["metadata"] == {"name": "a"}
    with pytest.raises(DecodeError, match="Kind"):
        decode(body, DEFS)


def test_what_is_not_protobuf_is_refused() -> None:
    with pytest.raises(DecodeError, match="does not appear to be a protobuf message"):
        decode(b'{"kind":"Pod"}', DEFS)


def test_kinds_without_a_message_are_refused() -> None:
    with pytest.raises(UnknownMessage, match=r'no kind "Gadget" is registered for version "example\.org/v1"'):
        decode(body_of("example.org/v1", "Gadget", b""), DEFS)


@pytest.mark.parametrize("name", KUBECTL)
def test_a_cut_body_is_refused(name: str) -> None:
    body = bytes.fromhex(KUBECTL[name][0])
    message_starts = 4 + 2 + body[5]
    for length in range(message_starts + 1, len(body) - 4):
        with pytest.raises(DecodeError, match="unexpected EOF"):
            decode(body[:length], DEFS)


@given(st.binary(max_size=60))
def test_noise_is_decoded_or_refused_but_never_crashes(noise: bytes) -> None:
    for kind in ("Pod", "Service"):
        with suppress(DecodeError):
            assert decode(body_of("v1", kind, noise), DEFS)[1] == kind


@pytest.mark.parametrize("additional", [True, False, {"type": "string"}])
def test_schemas_and_their_alternatives_survive_the_round_trip(additional: Any) -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "string", "enum": ["x", None, 1, 1.5, {"y": []}]}},
            "b": {"items": [{"type": "string"}, {"type": "integer"}], "minimum": 0.5, "maximum": 7},
        },
        "dependencies": {"a": ["b", "c"], "b": {"type": "object"}},
        "additionalProperties": additional,
        "default": {"a": []},
        "x-kubernetes-preserve-unknown-fields": True,
    }
    version = {"name": "v1", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}}
    crd = {"spec": {"group": "e", "scope": "Cluster", "versions": [version]}}
    _, _, obj = decode(encode("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd, DEFS), DEFS)
    assert obj["spec"]["versions"] == [version]


# Round trips of arbitrary objects of every kind that has a message.

KINDS = sorted(gvk for gvk, name in DEFS.kinds().items() if message_of(name) in wire_table())


@settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_every_kind_survives_the_round_trip(data: st.DataObject) -> None:
    gvk = data.draw(st.sampled_from(KINDS))
    node = DEFS.node_for(gvk)
    assert node is not None
    obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, **data.draw(values(node, 4))}
    normalize(node, obj)
    before = copy_json(obj)
    api_version, kind, back = decode(encode(gvk.api_version, gvk.kind, obj, DEFS), DEFS)
    assert obj == before
    normalize(node, back)
    assert (api_version, kind, back) == (gvk.api_version, gvk.kind, obj)

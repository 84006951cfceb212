"""JSON bodies become objects of their type, or are refused in Kubernetes' words."""

from __future__ import annotations

import base64
import json
import timeit
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.types import Obj
from karmada.kube.schema import walk
from karmada.kube.schema.builtin import OBJECT_META, Definitions
from karmada.kube.schema.decode import DecodeError, duplicate_fields, normalize, parse_json
from karmada.kube.schema.node import Node
from karmada.kube.schema.structural import Checks
from tests.support.cases import cases
from tests.support.objects import kube_object

DEFS = Definitions.load()

DEPLOYMENT: Obj = kube_object(
    "apps/v1", "Deployment", "web", "default", labels={"app": "web"}, annotations={"note": "x" * 900}
) | {
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {
            "metadata": {"labels": {"app": "web", "tier": "front"}},
            "spec": {
                "volumes": [{"name": "cfg", "configMap": {"name": "cfg"}}, {"name": "tmp", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "web",
                        "image": "nginx:1.25",
                        "args": ["-c", "x"],
                        "ports": [{"containerPort": 80, "name": "http", "protocol": "TCP"}],
                        "env": [
                            {"name": "A", "value": "1"},
                            {"name": "B", "valueFrom": {"secretKeyRef": {"key": "k"}}},
                        ],
                        "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
                        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}, "periodSeconds": 3},
                        "volumeMounts": [{"name": "cfg", "mountPath": "/etc/cfg"}],
                    }
                ],
                "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            },
        },
    },
    "status": {},
}


def normalized(api_version: str, kind: str, obj: Obj) -> tuple[Obj, list[str]]:
    node = DEFS.node_for(GVK.parse(api_version, kind))
    assert node is not None
    copy = copy_json(obj)
    return copy, normalize(node, copy)


def pod(spec: Obj) -> tuple[Obj, list[str]]:
    result, unknown = normalized("v1", "Pod", {"metadata": {"name": "a"}, "spec": spec})
    return result["spec"], unknown


def refusal(api_version: str, kind: str, obj: Obj) -> str:
    with pytest.raises(DecodeError) as caught:
        normalized(api_version, kind, obj)
    return str(caught.value)


class TestNormalize:
    def test_an_object_in_its_final_form_is_left_alone(self) -> None:
        assert normalized("apps/v1", "Deployment", DEPLOYMENT) == (DEPLOYMENT, [])

    def test_unknown_fields_go_and_are_named(self) -> None:
        spec, unknown = pod(
            {
                "foo": {"deep": 1},
                "containers": [{"name": "a"}, {"name": "b", "bar": 1, "env": [{"name": "x", "baz": 2}]}],
            }
        )
        assert sorted(unknown) == ["spec.containers[1].bar", "spec.containers[1].env[0].baz", "spec.foo"]
        assert "foo" not in spec
        assert spec["containers"][1] == {"name": "b", "env": [{"name": "x"}], "resources": {}}

    def test_an_unknown_field_at_the_root_has_no_prefix(self) -> None:
        assert normalized("v1", "ConfigMap", {"metadata": {}, "spec": {}})[1] == ["spec"]

    def test_field_names_are_case_sensitive(self) -> None:
        assert normalized("v1", "ConfigMap", {"metadata": {}, "Data": {}})[1] == ["Data"]

    def test_null_equals_absent(self) -> None:
        spec, unknown = pod({"nodeSelector": None, "containers": [{"name": "a", "ports": None, "image": None}]})
        assert unknown == []
        assert spec == {"containers": [{"name": "a", "resources": {}}]}

    def test_null_in_a_map_or_list_is_the_empty_value(self) -> None:
        obj, _ = normalized("v1", "ConfigMap", {"metadata": {"labels": {"a": None}, "finalizers": [None]}})
        assert obj["metadata"] == {"labels": {"a": ""}, "finalizers": [""]}
        spec, _ = pod({"containers": [None, {"name": "a", "resources": {"limits": {"cpu": None}}}]})
        assert spec["containers"] == [{"resources": {}}, {"name": "a", "resources": {"limits": {"cpu": "0"}}}]

    def test_empty_optional_values_go_and_pointers_stay(self) -> None:
        spec, _ = pod(
            {
                "hostNetwork": False,
                "nodeName": "",
                "nodeSelector": {},
                "tolerations": [],
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "securityContext": {},
                "containers": [{"name": "", "tty": False, "livenessProbe": {"periodSeconds": 0}}],
            }
        )
        assert spec == {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {},
            "containers": [{"name": "", "livenessProbe": {}, "resources": {}}],
        }

    def test_structs_held_by_value_are_always_there(self) -> None:
        service, _ = normalized("v1", "Service", {"apiVersion": "v1", "kind": "Service"})
        assert service == {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {},
            "spec": {},
            "status": {"loadBalancer": {}},
        }
        spec, _ = pod(
            {"containers": [{"name": "a", "env": [{"valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}]}]}
        )
        assert spec["containers"][0]["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"

    @cases((1.0, 1), (-0.0, 0), (2**31 - 1, 2**31 - 1))
    def test_whole_floats_are_integers(self, given: float, stored: int) -> None:
        obj, _ = normalized("apps/v1", "Deployment", {"spec": {"replicas": given}})
        assert obj["spec"]["replicas"] == stored
        assert type(obj["spec"]["replicas"]) is int

    def test_int64_fields_hold_the_largest_integer(self) -> None:
        spec, _ = pod({"activeDeadlineSeconds": 2**63 - 1})
        assert spec["activeDeadlineSeconds"] == 2**63 - 1

    @cases(
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (2, "2"),
        (0.1, "100m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
    )
    def test_quantities_become_canonical(self, given: Any, stored: str) -> None:
        spec, _ = pod({"containers": [{"resources": {"limits": {"cpu": given}}}]})
        assert spec["containers"][0]["resources"]["limits"]["cpu"] == stored

    @cases(
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.999Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
    )
    def test_times_become_whole_seconds_in_utc(self, given: str, stored: str) -> None:
        obj, _ = normalized("v1", "Namespace", {"metadata": {"deletionTimestamp": given}})
        assert obj["metadata"]["deletionTimestamp"] == stored

    def test_the_zero_time_is_no_time(self) -> None:
        obj, _ = normalized("v1", "Namespace", {"metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}})
        assert obj["metadata"] == {}

    @cases("2026-01-02T03:04:05.500000Z", "2026-01-02T05:04:05.500000+02:00")
    def test_micro_times_have_six_digits(self, given: str) -> None:
        obj, _ = normalized("coordination.k8s.io/v1", "Lease", {"spec": {"renewTime": given}})
        assert obj["spec"]["renewTime"] == "2026-01-02T03:04:05.500000Z"

    @cases(
        ("Z", 'cannot parse "Z" as ".000000"'),
        (".5Z", 'cannot parse ".5Z" as ".000000"'),
        (".1234567Z", 'cannot parse "7Z" as "Z07:00"'),
    )
    def test_micro_times_need_their_six_digits(self, fraction: str, why: str) -> None:
        given = f"2026-01-02T03:04:05{fraction}"
        with pytest.raises(DecodeError) as caught:
            normalized("coordination.k8s.io/v1", "Lease", {"spec": {"renewTime": given}})
        assert str(caught.value) == f'parsing time "{given}" as "2006-01-02T15:04:05.000000Z07:00": {why}'

    @cases(("YQ==", "YQ=="), ("YW\nJj\r\nYQ==", "YWJjYQ=="), ("YR==", "YQ=="), ("", ""))
    def test_base64_becomes_canonical(self, given: str, stored: str) -> None:
        obj, _ = normalized("v1", "Secret", {"data": {"a": given}})
        assert obj["data"] == {"a": stored}

    def test_free_json_is_not_touched(self) -> None:
        data = {"a": None, "b": {}, "c": [1.0, None], "status": {"x": ""}}
        obj, unknown = normalized("apps/v1", "ControllerRevision", {"data": data, "revision": 1})
        assert obj["data"] == data
        assert unknown == []

    def test_schemas_inside_a_schema_are_cleaned_without_a_report(self) -> None:
        schema = {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "string", "bogus": 1}, "minItems": 1.0}},
            "additionalProperties": False,
            "dependencies": {"a": ["b"]},
            "default": {"x": None},
            "wrong": 1,
        }
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        obj, unknown = normalized(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": [version]}}
        )
        assert unknown == ["spec.versions[0].schema.openAPIV3Schema.wrong"]
        stored = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert stored["properties"]["a"] == {"type": "array", "items": {"type": "string"}, "minItems": 1}
        assert stored["additionalProperties"] is False
        assert stored["default"] == {"x": None}

    def test_unknown_fields_in_maps_of_structs_have_the_key_in_their_path(self) -> None:
        schema = {"openAPIV3Schema": {"properties": {"spec": {"type": "object", "oops": 1}}}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        _, unknown = normalized(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": {"versions": [version]}}
        )
        assert unknown == ["spec.versions[0].schema.openAPIV3Schema.properties.spec.oops"]

    @cases(
        (
            {"spec": {"replicas": "3"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 2**31}},
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": {"replicas": True}},
            "json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {"spec": []},
            "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec",
        ),
        (
            {"spec": {"paused": "no"}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"metadata": {"labels": ["a"]}},
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            {"spec": {"template": {"spec": {"containers": {}}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers"
            " of type []v1.Container",
        ),
        (
            {"spec": {"template": {"spec": {"containers": [{"name": "a"}, {"args": [1]}]}}}},
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.args"
            " of type string",
        ),
        (
            {"spec": {"template": {"spec": {"containers": [{"image": 5}]}}}},
            "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image"
            " of type string",
        ),
    )
    def test_a_value_of_the_wrong_type_is_refused_in_the_words_of_go(self, obj: Obj, text: str) -> None:
        assert refusal("apps/v1", "Deployment", obj) == text

    def test_a_body_that_is_no_object_is_refused(self) -> None:
        node = DEFS.node_for(GVK("apps", "v1", "Deployment"))
        assert node is not None
        with pytest.raises(DecodeError, match=r"^json: cannot unmarshal array into Go value of type v1\.Deployment$"):
            normalize(node, [])  # type: ignore[arg-type]

    @cases("1 Gi", "abc", "", True, [])
    def test_a_bad_quantity_is_refused(self, quantity: Any) -> None:
        text = refusal("v1", "ResourceQuota", {"spec": {"hard": {"cpu": quantity}}})
        assert text == "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

    def test_a_bad_time_is_refused(self) -> None:
        text = refusal("v1", "Namespace", {"metadata": {"creationTimestamp": "today"}})
        assert text == 'parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006"'
        text = refusal("v1", "Namespace", {"metadata": {"creationTimestamp": 5}})
        assert text == "json: cannot unmarshal number into Go value of type string"

    def test_a_bad_int_or_string_is_refused(self) -> None:
        spec = {"ports": [{"port": 80, "targetPort": 1.5}]}
        assert (
            refusal("v1", "Service", {"spec": spec}) == "json: cannot unmarshal number 1.5 into Go value of type int32"
        )

    @cases(
        ("a", 0),
        ("ab", 0),
        ("abcde", 4),
        ("ab*d", 2),
        ("ab=", 3),
        ("ab=c", 2),
        ("abc=d", 4),
        ("=abc", 0),
        ("YQ==YQ==", 4),
    )
    def test_bad_base64_is_refused_with_its_offset(self, data: str, offset: int) -> None:
        assert refusal("v1", "Secret", {"data": {"a": data}}) == f"illegal base64 data at input byte {offset}"

    @given(st.binary(max_size=40))
    def test_every_base64_text_survives(self, data: bytes) -> None:
        text = base64.b64encode(data).decode()
        assert normalized("v1", "Secret", {"data": {"a": text}})[0]["data"] == {"a": text}

    def test_bottomless_nesting_is_refused(self) -> None:
        schema: Obj = {}
        for _ in range(2000):
            schema = {"not": schema}
        node = DEFS.node("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
        with pytest.raises(DecodeError, match="exceeded max depth"):
            normalize(node, schema)

    def test_normalizing_twice_changes_nothing(self) -> None:
        once, _ = normalized("apps/v1", "Deployment", {**DEPLOYMENT, "extra": 1, "status": None})
        assert normalized("apps/v1", "Deployment", once) == (once, [])

    def test_an_ordinary_deployment_takes_microseconds(self) -> None:
        node = DEFS.node_for(GVK("apps", "v1", "Deployment"))
        assert node is not None
        obj = copy_json(DEPLOYMENT)
        best = min(timeit.repeat(lambda: normalize(node, obj), number=200, repeat=10)) / 200
        assert best < 200e-6


class TestCustomResources:
    NODE = Node(
        type="object",
        properties={
            "metadata": DEFS.node(OBJECT_META),
            "spec": Node(
                type="object",
                properties={
                    "size": Node(type="integer"),
                    "free": Node(
                        type="object", preserve=True, properties={"known": Node(type="object", checks=Checks())}
                    ),
                    "map": Node(type="object", values=Node(type="object", properties={"a": Node(type="string")})),
                    "list": Node(type="array", items=Node(type="object", properties={"a": Node(type="string")})),
                    "inner": Node(
                        type="object", embedded=True, properties={"spec": Node(type="object", preserve=True)}
                    ),
                },
            ),
        },
    )

    def test_only_unknown_fields_go(self) -> None:
        obj = kube_object("e/v1", "E", "a", labels={}) | {
            "bad": 1,
            "spec": {
                "size": "wrong type",
                "nothing": None,
                "free": {"known": {"gone": 1}, "kept": {"x": 1}},
                "map": {"k": {"a": "", "b": 1}},
                "list": [{"a": None, "b": 1}],
                "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"y": 1}, "status": {}},
            },
        }
        unknown = normalize(self.NODE, obj, custom=True)
        assert sorted(unknown) == [
            "bad", "spec.free.known.gone", "spec.inner.status", "spec.list[0].b", "spec.map.k.b", "spec.nothing",
        ]  # fmt: skip
        assert obj["spec"] == {
            "size": "wrong type",
            "free": {"known": {}, "kept": {"x": 1}},
            "map": {"k": {"a": ""}},
            "list": [{"a": None}],
            "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"y": 1}},
        }

    def test_metadata_is_that_of_every_object(self) -> None:
        obj: Obj = {"metadata": {"name": "a", "nome": "b", "labels": None}}
        assert normalize(self.NODE, obj, custom=True) == ["metadata.nome"]
        assert obj == {"metadata": {"name": "a"}}
        with pytest.raises(DecodeError, match=r"ObjectMeta\.labels of type string"):
            normalize(self.NODE, {"metadata": {"labels": {"a": 1}}}, custom=True)


class TestParseJson:
    @cases(b"", b"  ", b'{"a":', b'{"a":1', b'["a', b'{"a":tr')
    def test_a_cut_body_is_reported_as_such(self, body: bytes) -> None:
        with pytest.raises(ValueError) as caught:
            parse_json(body)
        assert str(caught.value) == "couldn't get version/kind; json parse error: unexpected end of JSON input"

    @cases(
        (b"hello", "invalid character 'h' looking for beginning of value"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        (b'{"a":[1 2]}', "invalid character '2' after array element"),
        (b'{"a":["]" 2]}', "invalid character '2' after array element"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b'{"a":trux}', "invalid character 'x' in literal true (expecting 'e')"),
        (b'{"a":"x\ny"}', "invalid character '\\n' in string literal"),
        (b'{"a":"\\x"}', "invalid character 'x' in string escape code"),
        (b'{"a":Infinity}', "invalid character 'I' looking for beginning of value"),
        (b'{"a":-Infinity}', "invalid character 'I' in numeric literal"),
        (b"'", "invalid character '\\'' looking for beginning of value"),
    )
    def test_a_broken_body_is_refused_in_the_words_of_go(self, body: bytes, text: str) -> None:
        with pytest.raises(ValueError) as caught:
            parse_json(body)
        assert str(caught.value) == f"couldn't get version/kind; json parse error: {text}"

    def test_broken_text_is_replaced_as_go_does(self) -> None:
        assert parse_json(b'{"a":"x\xffy"}') == {"a": "x\ufffdy"}
        assert parse_json(b'{"a":"\\ud800"}') == {"a": "\ufffd"}
        assert parse_json(b'{"a":"\\ud83d\\ude00"}') == {"a": "\U0001f600"}

    def test_integers_survive(self) -> None:
        assert parse_json(b"[9223372036854775807,-9223372036854775808]") == [2**63 - 1, -(2**63)]


class TestDuplicates:
    @cases(
        (b'{"a":1,"b":{"a":1}}', []),
        (b'{"metadata":{"labels":{"a":"1","a":"2"}}}', ["metadata.labels.a"]),
        (b'{"spec":{"containers":[{"name":"a"},{"name":"b" , "name" : "c"}]}}', ["spec.containers[1].name"]),
        (b'{"a":1,"a":1,"a":1}', ["a"]),
        (b'{"a":"\\u0022\\u0022","b":1,"b":2}', ["b"]),
        (b'{"a":"say \\":\\"", "b" : [] }', []),
        (b'{"a":{"x":1,"x":2},"a":{"y":1}}', ["a.x", "a"]),
    )
    def test_repeated_fields_are_found_with_their_path(self, body: bytes, paths: list[str]) -> None:
        assert duplicate_fields(body, orjson.loads(body)) == paths

    @given(
        st.recursive(st.none() | st.text() | st.integers(0, 9), lambda c: st.lists(c) | st.dictionaries(st.text(), c))
    )
    def test_ordinary_bodies_have_none(self, value: Any) -> None:
        for body in (json.dumps(value).encode(), json.dumps(value, indent=1, ensure_ascii=False).encode()):
            assert duplicate_fields(body, json.loads(body)) == []


def test_members_of_an_object_in_form_are_passed_over_and_all_others_are_not() -> None:
    known: Obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"odd": 1}, "status": None}
    changed = {**known, "metadata": {"name": "p", "odd": 1}}
    node = DEFS.node_for(GVK("", "v1", "Pod"))
    assert node is not None
    assert normalize(node, changed, known=known) == ["metadata.odd"]
    assert changed["spec"] is known["spec"]
    assert changed["status"] == {}, "a null is never in form"
    assert normalize(node, {**known, "spec": {"odd": 1}}, known=known) == ["spec.odd"]


def test_a_pod_spec_that_comes_again_is_not_walked_and_one_that_was_changed_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found, unknown = normalized("apps/v1", "Deployment", copy_json(DEPLOYMENT))
    assert not unknown
    walked: list[Any] = []
    quantity = walk.canonical_quantity

    def watched(value: Any) -> str:
        walked.append(value)
        return quantity(value)

    monkeypatch.setattr(walk, "canonical_quantity", watched)
    assert normalized("apps/v1", "Deployment", copy_json(found)) == (found, [])
    assert walked == []
    changed = copy_json(found)
    limits = changed["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits["cpu"] = "1500m"
    limits["memory"] = "1.5Gi"
    again, _ = normalized("apps/v1", "Deployment", changed)
    assert walked
    assert again["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == "1536Mi"


@cases(float("nan"), "x")
def test_a_pod_spec_whose_bytes_look_like_a_known_one_is_still_refused(wrong: Any) -> None:
    def deployment(containers: Any) -> Obj:
        obj = copy_json(DEPLOYMENT)
        obj["spec"]["template"]["spec"]["containers"] = containers
        return obj

    normalized("apps/v1", "Deployment", deployment(None))
    normalized("apps/v1", "Deployment", deployment(None))
    with pytest.raises(DecodeError):
        normalized("apps/v1", "Deployment", deployment(wrong))


def test_unknown_fields_of_a_pod_spec_are_reported_each_time() -> None:
    for _ in range(3):
        obj = copy_json(DEPLOYMENT)
        obj["spec"]["template"]["spec"]["nope"] = 1
        found, unknown = normalized("apps/v1", "Deployment", obj)
        assert unknown == ["spec.template.spec.nope"]
        assert "nope" not in found["spec"]["template"]["spec"]

"""Hostile requests of a given size: wide, deep, repeated, with duplicated keys, with many errors.

Each shape is a function from a number of bytes to a request of about that size; `shape` lists them for the tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from karmada.kube.objects.types import Obj
from karmada.kube.schema.builtin import Definitions
from karmada.kube.schema.protobuf import encode

CORE = "/api/v1/namespaces/default"
CONFIGMAPS, PODS = f"{CORE}/configmaps", f"{CORE}/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"


OPENING = b'{"metadata":{"name":"fresh"},"data":{'


@dataclass(frozen=True, slots=True)
class Sent:
    method: str
    path: str
    body: bytes = b""
    media: str = JSON
    query: str = ""


Shape = Callable[[int], Sent]
SHAPES: dict[str, Shape] = {}


def shape(made: Shape) -> Shape:
    SHAPES[made.__name__] = made
    return made


def named(**fields: Any) -> Obj:
    return {"metadata": {"name": "fresh"}, **fields}


def post(path: str, obj: Any, media: str = JSON) -> Sent:
    return Sent("POST", path, orjson.dumps(obj), media)


def patch(path: str, obj: Any, media: str) -> Sent:
    if media == APPLY:
        obj["metadata"]["name"] = "target"
    query = "fieldManager=m&force=true" if media == APPLY else ""
    return Sent("PATCH", f"{path}/target", orjson.dumps(obj), media, query)


def times(size: int, one: Any) -> int:
    """How many of these fit into so many bytes."""
    return max(1, size // (len(orjson.dumps(one)) + 1))


# --- JSON


@shape
def keys_of_a_config_map(size: int) -> Sent:
    return post(CONFIGMAPS, named(data={f"key-{n}": "v" for n in range(size // 15)}))


@shape
def bad_keys_of_a_config_map(size: int) -> Sent:
    return post(CONFIGMAPS, named(data={f"bad key/{n}": "v" for n in range(size // 18)}))


@shape
def unknown_fields(size: int) -> Sent:
    return post(CONFIGMAPS, named(**{f"unknown{n}": 1 for n in range(size // 16)}))


@shape
def unknown_fields_in_depth(size: int) -> Sent:
    inner: Any = {f"u{n}": 1 for n in range(size // 20)}
    for level in range(100):
        inner = {f"level{level}": inner, "also": 1}
    return post(PODS, named(spec=inner))


@shape
def one_key_repeated(size: int) -> Sent:
    return Sent("POST", CONFIGMAPS, b'{"metadata":{"name":"fresh"},"data":{' + b'"a":"1",' * (size // 8) + b'"a":"1"}}')


@shape
def many_keys_each_repeated(size: int) -> Sent:
    pairs = b",".join(b'"k%d":"1","k%d":"2"' % (n, n) for n in range(size // 26))
    return Sent("POST", CONFIGMAPS, OPENING + pairs + b"}}")


@shape
def brackets_without_end(size: int) -> Sent:
    return Sent("POST", CONFIGMAPS, b"[" * size)


@shape
def no_json_at_the_end(size: int) -> Sent:
    return Sent(
        "POST", CONFIGMAPS, b'{"metadata":{"name":"fresh"},"data":{' + b'"a":"\\u0041",' * (size // 13) + b"x}}"
    )


@shape
def bad_labels(size: int) -> Sent:
    meta = {"name": "fresh", "labels": {f"bad label {n}/x/y": "bad value!" for n in range(size // 36)}}
    return post(CONFIGMAPS, {"metadata": meta})


@shape
def finalizers(size: int) -> Sent:
    return post(CONFIGMAPS, {"metadata": {"name": "fresh", "finalizers": [f"e.com/{n}" for n in range(size // 14)]}})


@shape
def owner_references(size: int) -> Sent:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "12345"}
    owners = [{**one, "uid": f"u{n:04}"} for n in range(times(size, one))]
    return post(CONFIGMAPS, {"metadata": {"name": "fresh", "ownerReferences": owners}})


@shape
def managed_fields_of_the_client(size: int) -> Sent:
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    fields: Obj = {"f:data": {f"f:key-{n}": {} for n in range(size // 14)}}
    return post(CONFIGMAPS, {"metadata": {"name": "fresh", "managedFields": [{**entry, "fieldsV1": fields}]}})


@shape
def empty_containers(size: int) -> Sent:
    return post(PODS, named(spec={"containers": [{} for _ in range(size // 3)]}))


@shape
def containers_of_one_name(size: int) -> Sent:
    one = {"name": "c", "image": "i", "ports": [{"containerPort": 80, "name": "http"}]}
    return post(PODS, named(spec={"containers": [one] * times(size, one)}))


@shape
def volumes_and_mounts(size: int) -> Sent:
    count = size // 100
    volumes = [{"name": f"v{n}", "emptyDir": {}} for n in range(count)]
    mounts = [{"name": f"v{count - n}", "mountPath": f"/m{n}"} for n in range(count)]
    return post(
        PODS, named(spec={"containers": [{"name": "c", "image": "i", "volumeMounts": mounts}], "volumes": volumes})
    )


@shape
def variables_of_a_container(size: int) -> Sent:
    env = [{"name": f"bad name {n % 7}", "value": "$(A)" * 3, "valueFrom": {}} for n in range(size // 60)]
    return post(PODS, named(spec={"containers": [{"name": "c", "image": "i", "env": env}]}))


@shape
def tolerations_and_terms(size: int) -> Sent:
    term = {"matchExpressions": [{"key": "a", "operator": "Bad", "values": ["x"]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term] * times(size, term)}
        }
    }
    return post(PODS, named(spec={"containers": [{"name": "c", "image": "i"}], "affinity": affinity}))


@shape
def ports_of_a_service(size: int) -> Sent:
    ports = [{"name": f"p{n}", "port": 1 + n % 60000} for n in range(size // 28)]
    return post(f"{CORE}/services", named(spec={"ports": ports, "selector": {"a": "b"}}))


@shape
def rules_of_a_role(size: int) -> Sent:
    rule = {"apiGroups": ["a"], "resources": ["b", "c/d"], "verbs": ["get", "list"], "resourceNames": ["x"]}
    return post(f"{RBAC}/clusterroles", named(rules=[rule] * times(size, rule)))


@shape
def subjects_of_a_binding(size: int) -> Sent:
    subject = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    return post(f"{RBAC}/clusterrolebindings", named(roleRef=role, subjects=[subject] * times(size, subject)))


@shape
def webhooks_of_one_name(size: int) -> Sent:
    hook = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://h/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    return post(path, named(webhooks=[hook] * times(size, hook)))


@shape
def peers_of_a_network_policy(size: int) -> Sent:
    peer = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "bad"]}}
    spec = {"podSelector": {}, "ingress": [{"from": [peer] * times(size, peer)}]}
    return post("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", named(spec=spec))


# --- reviews, options


@shape
def groups_of_an_access_review(size: int) -> Sent:
    spec = {"user": "u", "groups": [f"g{n}" for n in range(size // 8)], "resourceAttributes": {"verb": "get"}}
    return post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})


@shape
def unknown_fields_of_a_self_review(size: int) -> Sent:
    spec = {"resourceAttributes": {"verb": "get"}, **{f"u{n}": 1 for n in range(size // 10)}}
    return post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})


@shape
def requirements_of_a_review(size: int) -> Sent:
    one = {"key": "a", "operator": "In", "values": ["x", "bad value!"]}
    attributes = {"verb": "list", "resource": "pods", "labelSelector": {"requirements": [one] * times(size, one)}}
    return post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})


@shape
def a_token_without_end(size: int) -> Sent:
    return post("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "a.b." + "x" * size}})


@shape
def options_of_a_delete(size: int) -> Sent:
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"] * (size // 6)}
    return Sent("DELETE", f"{CONFIGMAPS}/absent", orjson.dumps(options))


# --- selectors


@shape
def values_of_a_label_selector(size: int) -> Sent:
    return Sent("GET", CONFIGMAPS, query="labelSelector=a+in+(" + ",".join(f"v{n}" for n in range(size // 7)) + ")")


@shape
def requirements_of_a_label_selector(size: int) -> Sent:
    return Sent("GET", CONFIGMAPS, query="labelSelector=" + ",".join(f"k{n}%3Dv" for n in range(size // 9)))


@shape
def requirements_of_a_field_selector(size: int) -> Sent:
    return Sent("GET", CONFIGMAPS, query="fieldSelector=" + ",".join(["metadata.name%3Dx"] * (size // 18)))


@shape
def a_bad_label_selector(size: int) -> Sent:
    return Sent("GET", CONFIGMAPS, query="labelSelector=" + "(" * size)


# --- definitions


def crd(schema: Obj) -> Obj:
    names = {"plural": "things", "kind": "Thing"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "things.example.org"}, "spec": spec}


@shape
def properties_of_a_definition(size: int) -> Sent:
    properties = {f"p{n}": {"type": "string"} for n in range(size // 26)}
    return post(CRDS, crd({"type": "object", "properties": properties}))


@shape
def bad_properties_of_a_definition(size: int) -> Sent:
    properties = {f"p{n}": {"type": "bad"} for n in range(size // 22)}
    return post(CRDS, crd({"type": "object", "properties": properties}))


@shape
def an_enum_of_a_definition(size: int) -> Sent:
    return post(CRDS, crd({"type": "object", "properties": {"p": {"type": "string", "enum": ["v"] * (size // 4)}}}))


@shape
def alternatives_of_a_definition(size: int) -> Sent:
    one = {"properties": {"p": {"pattern": "a+"}}, "required": ["p"]}
    schema = {"type": "object", "properties": {"p": {"type": "string"}}, "anyOf": [one] * times(size, one)}
    return post(CRDS, crd(schema))


@shape
def nested_alternatives_of_a_definition(size: int) -> Sent:
    inner: Obj = {"enum": ["a"]}
    levels = min(60, size // 1000)
    for _ in range(levels):
        inner = {"oneOf": [inner, {"enum": ["x" * max(1, size // levels)]}]}
    return post(CRDS, crd({"type": "object", "properties": {"p": {"type": "string", **inner}}}))


@shape
def rules_of_a_definition(size: int) -> Sent:
    rule = {"rule": "self.size() < 5 || self.startsWith('a')", "message": "no"}
    text = {"type": "string", "maxLength": 10, "x-kubernetes-validations": [rule] * times(size, rule)}
    return post(CRDS, crd({"type": "object", "properties": {"p": text}}))


@shape
def a_long_rule_of_a_definition(size: int) -> Sent:
    rule = {"rule": " || ".join(["self == 'a'"] * (min(size, 90_000) // 15))}
    text = {"type": "string", "maxLength": 10, "x-kubernetes-validations": [rule]}
    return post(CRDS, crd({"type": "object", "properties": {"p": text}}))


@shape
def a_default_of_a_definition(size: int) -> Sent:
    value = {f"k{n}": ["a"] for n in range(size // 12)}
    place = {"type": "object", "default": value, "additionalProperties": {"type": "array", "items": {"type": "string"}}}
    return post(CRDS, crd({"type": "object", "properties": {"p": place}}))


# --- custom resources


def widget(**spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": "Widget", **named(spec=spec)}


SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string", "enum": [f"word-{n}" for n in range(500)]}},
                "numbers": {"type": "array", "items": {"type": "integer", "maximum": 5}},
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "v": {"type": "string", "default": "d"}},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "by": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "properties": {
                            "n": {"type": "integer", "minimum": 0},
                            "text": {"type": "string", "pattern": "^a*$"},
                        },
                    },
                },
                "ruled": {
                    "type": "array",
                    "maxItems": 100000,
                    "items": {
                        "type": "string",
                        "maxLength": 10,
                        "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}],
                    },
                },
            },
        }
    },
}  # fmt: skip


@shape
def bad_words_of_a_custom_resource(size: int) -> Sent:
    return post(WIDGETS, widget(words=["bad"] * (size // 6)))


@shape
def good_words_of_a_custom_resource(size: int) -> Sent:
    return post(WIDGETS, widget(words=["word-7"] * (size // 9)))


@shape
def numbers_of_the_wrong_type(size: int) -> Sent:
    return post(WIDGETS, widget(numbers=["a"] * (size // 4)))


@shape
def a_set_with_duplicates(size: int) -> Sent:
    return post(WIDGETS, widget(set=[f"v{n % 100}" for n in range(size // 7)]))


@shape
def a_map_like_list_with_duplicates(size: int) -> Sent:
    return post(WIDGETS, widget(map=[{"name": f"n{n % 100}"} for n in range(size // 15)]))


@shape
def a_map_like_list(size: int) -> Sent:
    return post(WIDGETS, widget(map=[{"name": f"n{n}"} for n in range(size // 17)]))


@shape
def a_free_tree(size: int) -> Sent:
    inner: Any = [{"a": n} for n in range(size // 10)]
    for _ in range(80):
        inner = {"x": inner}
    return post(WIDGETS, widget(free=inner))


@shape
def items_under_a_long_key(size: int) -> Sent:
    by = {"k" * (size // 2): {"n": -1, "text": "b"}, **{f"k{n}": {"n": -1, "text": "b"} for n in range(size // 50)}}
    return post(WIDGETS, widget(by=by))


@shape
def unknown_fields_of_a_custom_resource(size: int) -> Sent:
    return post(WIDGETS, widget(by={f"k{n}": {f"u{n}": 1} for n in range(size // 20)}))


@shape
def items_that_break_a_rule(size: int) -> Sent:
    return post(WIDGETS, widget(ruled=["b"] * (size // 4)))


# --- YAML


@shape
def yaml_keys(size: int) -> Sent:
    lines = b"".join(b"  key-%d: v\n" % n for n in range(size // 14))
    return Sent("POST", CONFIGMAPS, b"metadata:\n  name: fresh\ndata:\n" + lines, YAML)


@shape
def yaml_repeated_keys(size: int) -> Sent:
    return Sent("POST", CONFIGMAPS, b"metadata:\n  name: fresh\ndata:\n" + b"  k: v\n" * (size // 7), YAML)


@shape
def yaml_aliases(size: int) -> Sent:
    head = b"metadata:\n  name: fresh\n  annotations: &a {a: b}\nx:\n"
    return Sent("POST", CONFIGMAPS, head + b"- *a\n" * (size // 5), YAML)


@shape
def yaml_of_aliases_of_aliases(size: int) -> Sent:
    lines = [b"a0: &a0 [x, x]"]
    lines += [b"a%d: &a%d [*a%d, *a%d]" % (n, n, n - 1, n - 1) for n in range(1, max(2, size // 40))]
    return Sent("POST", CONFIGMAPS, b"\n".join(lines), YAML)


@shape
def yaml_text(size: int) -> Sent:
    text = b"".join(b"    line of text: # not a comment\n" for _ in range(size // 34))
    return Sent("POST", CONFIGMAPS, b"metadata:\n  name: fresh\ndata:\n  k: |\n" + text, YAML)


@shape
def yaml_escapes(size: int) -> Sent:
    return Sent(
        "POST", CONFIGMAPS, b'metadata: {name: fresh}\ndata: {k: "' + b"\\x41\\\n  " * (size // 8) + b'"}', YAML
    )


@shape
def yaml_digits(size: int) -> Sent:
    return Sent("POST", CONFIGMAPS, b"metadata: {name: fresh}\ndata: {k: 0x" + b"f" * size + b"}", YAML)


# --- protobuf


def protobuf(path: str, kind: str, obj: Obj) -> Sent:
    return Sent("POST", path, encode("v1", kind, obj, Definitions.load()), PROTOBUF)


@shape
def protobuf_keys(size: int) -> Sent:
    return protobuf(CONFIGMAPS, "ConfigMap", named(data={f"k{n}": "v" for n in range(size // 14)}))


@shape
def protobuf_containers(size: int) -> Sent:
    containers = [{"name": "c", "image": "i"} for _ in range(size // 12)]
    return protobuf(PODS, "Pod", named(spec={"containers": containers}))


@shape
def protobuf_noise(size: int) -> Sent:
    return Sent("POST", PODS, b"k8s\x00" + random.Random(1).randbytes(size), PROTOBUF)


@shape
def protobuf_nested_groups(size: int) -> Sent:
    return Sent("POST", PODS, b"k8s\x00" + b"\x0b" * size, PROTOBUF)


# --- patches


@shape
def operations_that_add_in_front(size: int) -> Sent:
    one = {"op": "add", "path": "/metadata/finalizers/0", "value": "e.com/x"}
    first = {"op": "add", "path": "/metadata/finalizers", "value": []}
    return patch(CONFIGMAPS, [first] + [one] * min(9_000, times(size, one)), JSON_PATCH)


@shape
def operations_that_copy_what_grows(size: int) -> Sent:
    first = {"op": "add", "path": "/data/a", "value": "x" * (size // 2)}
    one = {"op": "copy", "from": "/data", "path": "/metadata/annotations"}
    return patch(CONFIGMAPS, [first] + [one] * times(size // 2, one), JSON_PATCH)


@shape
def operations_with_long_pointers(size: int) -> Sent:
    one = {"op": "test", "path": "/data/" + "~1~0" * 50, "value": 1}
    return patch(CONFIGMAPS, [one] * times(size, one), JSON_PATCH)


@shape
def a_wide_merge_patch(size: int) -> Sent:
    return patch(CONFIGMAPS, {"data": {f"key-{n}": None if n % 2 else "v" for n in range(size // 16)}}, MERGE)


@shape
def a_deep_merge_patch(size: int) -> Sent:
    inner: Any = {f"k{n}": "v" for n in range(size // 10)}
    for _ in range(90):
        inner = {"x": inner}
    return patch(WIDGETS, {"spec": {"free": inner}}, MERGE)


@shape
def a_strategic_patch_of_containers(size: int) -> Sent:
    containers = [{"name": f"c{n}", "image": "i"} for n in range(size // 26)]
    return patch(PODS, {"spec": {"containers": containers}}, STRATEGIC)


@shape
def a_strategic_patch_that_orders(size: int) -> Sent:
    count = size // 50
    order = [{"name": f"c{count - n}"} for n in range(count)]
    containers = [{"name": f"c{n + 1}", "image": "i"} for n in range(count)]
    return patch(PODS, {"spec": {"$setElementOrder/containers": order, "containers": containers}}, STRATEGIC)


@shape
def a_strategic_patch_that_deletes(size: int) -> Sent:
    meta: Obj = {"$deleteFromPrimitiveList/finalizers": [f"e.com/{n}" for n in range(size // 30)]}
    meta["finalizers"] = [f"e.com/{n}" for n in range(size // 30)]
    return patch(CONFIGMAPS, {"metadata": meta}, STRATEGIC)


@shape
def an_apply_of_many_keys(size: int) -> Sent:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **named(data={f"key-{n}": "v" for n in range(size // 15)})}
    return patch(CONFIGMAPS, obj, APPLY)


@shape
def an_apply_of_many_containers(size: int) -> Sent:
    containers = [{"name": f"c{n}", "image": "i"} for n in range(size // 26)]
    return patch(PODS, {"apiVersion": "v1", "kind": "Pod", **named(spec={"containers": containers})}, APPLY)


@shape
def an_apply_of_duplicates(size: int) -> Sent:
    containers = [{"name": "c", "image": "i"} for _ in range(size // 24)]
    return patch(PODS, {"apiVersion": "v1", "kind": "Pod", **named(spec={"containers": containers})}, APPLY)


@shape
def an_apply_of_a_custom_resource(size: int) -> Sent:
    return patch(WIDGETS, widget(map=[{"name": f"n{n}"} for n in range(size // 17)]), APPLY)

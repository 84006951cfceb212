"""The compiled schemas say of the built-in kinds what Kubernetes says of them."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from karmada.kube.objects.gvk import GVK
from karmada.kube.schema.builtin import Definitions, openapi_name, versions
from karmada.kube.schema.node import UNSET, Node
from karmada.kube.schema.wire import message_of, rules_of, wire_table
from tests.support.cases import cases

CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."


@pytest.fixture(scope="module")
def defs() -> Definitions:
    return Definitions.load()


def field(defs: Definitions, definition: str, name: str) -> Node:
    return defs.node(definition).properties[name]


@cases(
    (CORE + "Container", "ports", "map", ("containerPort", "protocol")),
    (CORE + "ServiceSpec", "ports", "map", ("port", "protocol")),
    (CORE + "PodSpec", "topologySpreadConstraints", "map", ("topologyKey", "whenUnsatisfiable")),
    (CORE + "PodSpec", "containers", "map", ("name",)),
    (CORE + "PodSpec", "tolerations", "atomic", ()),
    (META + "ObjectMeta", "finalizers", "set", ()),
    (META + "ObjectMeta", "ownerReferences", "map", ("uid",)),
    ("io.k8s.api.batch.v1.JobStatus", "conditions", "atomic", ()),
    ("io.k8s.api.rbac.v1.ClusterRole", "rules", "atomic", ()),
)
def test_lists_have_the_topology_of_server_side_apply(
    definition: str, name: str, list_type: str, list_keys: tuple[str, ...], defs: Definitions
) -> None:
    node = field(defs, definition, name)
    assert (node.list_type, node.list_keys) == (list_type, list_keys)


@cases(
    (CORE + "PodSpec", "volumes", {"merge", "retainKeys"}, "name"),
    (CORE + "Container", "ports", {"merge"}, "containerPort"),
    (CORE + "Container", "volumeMounts", {"merge"}, "mountPath"),
    (META + "ObjectMeta", "finalizers", {"merge"}, ""),
    ("io.k8s.api.apps.v1.DeploymentSpec", "strategy", {"retainKeys"}, ""),
    ("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", "selector", {"replace"}, ""),
    (CORE + "PodSpec", "tolerations", set(), ""),
)
def test_fields_have_their_strategic_merge_rules(
    definition: str, name: str, strategy: set[str], key: str, defs: Definitions
) -> None:
    node = field(defs, definition, name)
    assert node.patch_strategy == strategy
    assert node.patch_merge_key == key


@cases(META + "LabelSelector", CORE + "LocalObjectReference", CORE + "ObjectReference")
def test_some_types_are_atomic_wherever_they_stand(definition: str, defs: Definitions) -> None:
    assert defs.node(definition).atomic


def test_a_property_may_say_otherwise_than_its_type(defs: Definitions) -> None:
    claim = field(defs, CORE + "PersistentVolumeSpec", "claimRef")
    assert claim.map_type == "granular"
    assert claim.properties is defs.node(CORE + "ObjectReference").properties
    assert field(defs, CORE + "ServiceSpec", "selector").map_type == "atomic"


@cases(
    (CORE + "ResourceFieldSelector", "divisor", "quantity"),
    (CORE + "ServicePort", "targetPort", "int-or-string"),
    (META + "ObjectMeta", "creationTimestamp", "time"),
    ("io.k8s.api.coordination.v1.LeaseSpec", "renewTime", "micro-time"),
    (META + "ManagedFieldsEntry", "fieldsV1", "fields-v1"),
    ("io.k8s.api.apps.v1.ControllerRevision", "data", "json"),
    (EXTENSIONS + "JSONSchemaProps", "default", "json"),
    (EXTENSIONS + "JSONSchemaProps", "additionalProperties", "schema-or-bool"),
    (EXTENSIONS + "WebhookClientConfig", "caBundle", "bytes"),
)
def test_special_scalars_are_marked(definition: str, name: str, special: str, defs: Definitions) -> None:
    assert field(defs, definition, name).special == special


def test_maps_carry_the_type_of_their_values(defs: Definitions) -> None:
    requests = field(defs, CORE + "ResourceRequirements", "requests")
    assert requests.values is not None
    assert requests.values is not None
    assert requests.values.special == "quantity"
    data = field(defs, CORE + "Secret", "data")
    assert data.values is not None
    assert data.values.special == "bytes"
    assert data.go_type == "map[string][]uint8"


def test_the_keys_of_ports_have_their_default(defs: Definitions) -> None:
    assert field(defs, CORE + "ContainerPort", "protocol").default == "TCP"
    assert field(defs, CORE + "ServicePort", "protocol").default == "TCP"
    assert field(defs, CORE + "EndpointPort", "protocol").default is UNSET


def test_go_types_name_width_and_package(defs: Definitions) -> None:
    spec = defs.node("io.k8s.api.apps.v1.DeploymentSpec")
    assert spec.properties["replicas"].go_type == "int32"
    assert spec.properties["template"].go_type == "v1.PodTemplateSpec"
    assert field(defs, CORE + "PodSpec", "activeDeadlineSeconds").go_type == "int64"
    assert field(defs, CORE + "PodSpec", "containers").go_type == "[]v1.Container"


def test_empty_value_rules_come_with_the_struct(defs: Definitions) -> None:
    spec = defs.node("io.k8s.api.apps.v1.DeploymentSpec")
    assert spec.omit_empty == {"paused", "minReadySeconds"}
    assert set(spec.always) == {"template", "strategy"}
    assert defs.node(CORE + "ResourceFieldSelector").always == ("divisor",)


def test_types_that_contain_themselves_compile(defs: Definitions) -> None:
    schema = defs.node(EXTENSIONS + "JSONSchemaProps")
    assert schema.properties["not"] is schema
    assert schema.properties["additionalProperties"].alternative is schema


def test_equal_leaves_are_one_node(defs: Definitions) -> None:
    assert field(defs, CORE + "Container", "image") is field(defs, META + "ObjectMeta", "name")


def test_kinds_are_found_by_group_version_and_kind(defs: Definitions) -> None:
    assert defs.kinds()[GVK("apps", "v1", "Deployment")] == "io.k8s.api.apps.v1.Deployment"
    for api_version, kind in [
        ("autoscaling/v1", "Scale"), ("policy/v1", "Eviction"), ("authentication.k8s.io/v1", "TokenRequest"),
        ("v1", "Binding"), ("v1", "Status"), ("events.k8s.io/v1", "Event"),
    ]:  # fmt: skip
        gvk = GVK.parse(api_version, kind)
        node = defs.node_for(gvk)
        assert node is not None, gvk
        assert node.is_struct
    assert defs.node_for(GVK("apps", "v1", "Gadget")) is None


def test_delete_options_exist_in_every_group(defs: Definitions) -> None:
    assert defs.node_for(GVK("example.org", "v1", "DeleteOptions")) is defs.node(META + "DeleteOptions")


@pytest.mark.parametrize("version", versions())
def test_every_version_of_the_package_compiles(version: str) -> None:
    node = Definitions.load(version).node_for(GVK("apps", "v1", "Deployment"))
    assert node is not None
    assert node.properties["spec"].properties["template"].properties["spec"].properties["containers"].list_keys == (
        "name",
    )


def test_an_unknown_version_says_which_are_known() -> None:
    with pytest.raises(ValueError, match=r"no definitions of Kubernetes 1\.3 \(known: 1\.25, "):
        Definitions.load("1.3")


def test_raw_definitions_are_spelled_as_the_server_publishes_them(defs: Definitions) -> None:
    deployment = defs.raw("io.k8s.api.apps.v1.Deployment")
    assert deployment["type"] == "object"
    assert deployment["description"]
    assert deployment["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.apps.v1.DeploymentSpec"
    assert deployment["properties"]["kind"]["type"] == "string"
    assert "enum" not in deployment["properties"]["kind"]
    assert deployment["x-kubernetes-group-version-kind"] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    assert defs.raw("io.k8s.apimachinery.pkg.api.resource.Quantity")["type"] == "string"
    assert defs.raw("io.k8s.apimachinery.pkg.util.intstr.IntOrString")["format"] == "int-or-string"
    assert defs.raw(CORE + "ServicePort")["properties"]["protocol"]["default"] == "TCP"


def test_no_raw_definition_keeps_the_spelling_of_the_package(defs: Definitions) -> None:
    def walk(value: object) -> None:
        if isinstance(value, dict):
            assert not isinstance(value.get("type"), list)
            assert "$defs" not in str(value.get("$ref", ""))
            for child in value.values():
                walk(child)

    walk(dict(defs.raws()))


def test_the_raw_document_lives_as_long_as_somebody_holds_it(defs: Definitions) -> None:
    raws = defs.raws()
    assert defs.raws() is raws
    document = weakref.ref(raws)
    del raws
    gc.collect()
    assert document() is None


def test_loading_does_not_import_the_package() -> None:
    code = (
        "import sys; from karmada.kube.schema.builtin import Definitions; Definitions.load().kinds();"
        "assert 'kubernetes_validate' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_custom_kinds_are_named_by_their_group_backwards() -> None:
    gvk = GVK("policy.karmada.io", "v1alpha1", "PropagationPolicy")
    assert openapi_name(gvk) == "io.karmada.policy.v1alpha1.PropagationPolicy"


def test_the_wire_table_knows_only_fields_of_the_schema_and_no_number_twice(defs: Definitions) -> None:
    by_message = {message_of(name): defs.node(name) for name in defs.raws()}
    for message, fields in wire_table().items():
        numbers = [entry.number for entry in fields]
        assert len(set(numbers)) == len(numbers), message
        assert numbers == sorted(numbers), message
        if message in by_message:
            unknown = set(rules_of(message)) - set(by_message[message].properties)
            assert not unknown, message
        for entry in fields:
            assert entry.rule != "i" or entry.message in wire_table(), message


def test_the_wire_table_covers_every_field_of_the_messages_it_knows(defs: Definitions) -> None:
    for name in defs.raws():
        message = message_of(name)
        if message in wire_table():
            missing = set(defs.node(name).properties) - set(rules_of(message)) - {"apiVersion", "kind"}
            assert not missing or message in {"core.v1.ObjectReference"}, (message, missing)


def test_a_version_is_loaded_once_however_it_is_named() -> None:
    assert Definitions.load() is Definitions.load("1.36") is Definitions.load(version="1.36")

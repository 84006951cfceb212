from __future__ import annotations

from typing import Any

from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.types import Obj
from tests.support.cases import cases
from tests.support.objects import kube_object

VALIDATE = "validate-resourcebinding"
DEPENDENCIES = "resourcebinding.karmada.io/dependencies"
COMPONENTS = "MultiplePodTemplatesScheduling"


def binding(dependencies: str | None = None, **spec: Any) -> Obj:
    annotations = {} if dependencies is None else {DEPENDENCIES: dependencies}
    return kube_object("work.karmada.io/v1alpha2", "ResourceBinding", "b", "default", annotations=annotations) | {
        "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}, **spec}
    }


@cases(
    ("mutate-resourcebinding", "resourcebinding.karmada.io/permanent-id"),
    ("mutate-clusterresourcebinding", "clusterresourcebinding.karmada.io/permanent-id"),
)
def test_a_binding_gets_a_permanent_id_unless_it_has_one(path: str, label: str, completed: Any) -> None:
    assert completed(path, binding())["metadata"]["labels"] == {label: "id-1"}
    given = binding()
    given["metadata"]["labels"] = {label: "mine"}
    assert completed(path, given) == given


@cases("[]", "null", '[{"apiVersion":"v1","kind":"Secret","name":"s"}]')
async def test_dependencies_are_a_list_of_references(text: str, refused: Any) -> None:
    assert await refused(VALIDATE, binding(text)) == ""


@cases("", "{", '"a"', "{}", "[1]", '[{"kind":1}]', '[{"labelSelector":[]}]')
async def test_anything_else_is_refused(text: str, refused: Any) -> None:
    shown = text.replace('"', '\\"')
    assert await refused(VALIDATE, binding(text)) == (
        f'metadata.annotations.{DEPENDENCIES}: Invalid value: "{shown}": annotation value must be a valid JSON'
    )


async def test_components_have_names_of_their_own(refused: Any) -> None:
    names = ["a", "", "a"]
    obj = binding(components=[{"name": name, "replicas": 1} for name in names])
    assert await refused(VALIDATE, obj, None, COMPONENTS) == (
        '[spec.components[1].name: Invalid value: "": component names must be non-empty, '
        'spec.components[2].name: Invalid value: "a": component names must be unique]'
    )
    assert await refused(VALIDATE, obj) == ""
    assert await refused(VALIDATE, obj, copy_json(obj), COMPONENTS) != ""

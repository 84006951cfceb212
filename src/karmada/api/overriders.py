"""What an override policy changes, kind of change by kind of change.

The replicas and resources overriders, and the operator addIfAbsent, are forms of older documents.
"""

from __future__ import annotations

from typing import Any, Literal

from karmada.api.common import Int32, ResourceList, Struct

Operator = Literal["add", "remove", "replace"]


class ImagePredicate(Struct):
    """Where images are found."""

    path: str
    """A JSON pointer to the image, such as /spec/template/spec/containers/0/image."""


class ImageOverrider(Struct):
    """Changes a part of image names."""

    component: Literal["Registry", "Repository", "Tag"]
    """The part to change. A digest counts as Tag."""
    operator: Operator
    """How to change it."""
    predicate: ImagePredicate | None = None
    """The image to change; when absent, those of all containers of the well-known workload kinds."""
    value: str = ""
    """What is added, or put in its place; ignored for remove."""


class CommandArgsOverrider(Struct):
    """Changes the command or the arguments of a container."""

    container_name: str
    """The container."""
    operator: Literal["add", "remove"]
    """Whether the values are appended or taken out."""
    value: list[str] = []
    """The words to append or take out."""


class LabelAnnotationOverrider(Struct):
    """Changes labels or annotations."""

    operator: Literal["add", "remove", "replace", "addIfAbsent"]
    """How to change them: replace changes only what is there, addIfAbsent only what is not."""
    value: dict[str, str]
    """Keys with their values; for remove only the keys count."""


class FieldPatch(Struct):
    """Changes one place of an embedded document."""

    sub_path: str
    """A JSON pointer into the document."""
    operator: Operator
    """How to change it."""
    value: Any = None
    """The new value; none for remove."""


class FieldOverrider(Struct):
    """Changes a JSON or YAML document that stands as text in a field, as in a ConfigMap."""

    field_path: str
    """A JSON pointer to the field, such as /data/config.yaml."""
    json: list[FieldPatch] = []
    """Changes to a JSON document. Not together with yaml."""
    yaml: list[FieldPatch] = []
    """Changes to a YAML document. Not together with json."""


class PlaintextOverrider(Struct):
    """Changes any field."""

    path: str
    """A JSON pointer to the field."""
    operator: Operator
    """How to change it."""
    value: Any = None
    """The new value, any JSON; none for remove."""


class ReplicasOverrider(Struct):
    """Sets the number of replicas."""

    value: Int32
    """How many."""


class ResourceAmounts(Struct):
    """Requests and limits of a container."""

    limits: ResourceList = {}
    """The most it may use."""
    requests: ResourceList = {}
    """What is set aside for it."""


class ResourcesOverrider(Struct):
    """Sets the resources of a container."""

    container_name: str
    """The container."""
    value: ResourceAmounts
    """Its resources."""


class Overriders(Struct):
    """Changes to a resource on its way to a cluster. They are made kind by kind in the order image, command, args,
    labels, annotations, field, plaintext.
    """

    plaintext: list[PlaintextOverrider] = []
    """Changes to any field, made last."""
    image_overrider: list[ImageOverrider] = []
    """Changes to images."""
    command_overrider: list[CommandArgsOverrider] = []
    """Changes to commands of containers."""
    args_overrider: list[CommandArgsOverrider] = []
    """Changes to arguments of containers."""
    labels_overrider: list[LabelAnnotationOverrider] = []
    """Changes to labels."""
    annotations_overrider: list[LabelAnnotationOverrider] = []
    """Changes to annotations."""
    field_overrider: list[FieldOverrider] = []
    """Changes to documents inside of fields."""
    replicas_overrider: list[ReplicasOverrider] = []
    """The number of replicas; the last entry counts."""
    resources_overrider: list[ResourcesOverrider] = []
    """The resources of containers."""

"""MutatingAdmissionPolicies: changes in CEL to the objects of writes, put into force by bindings.

A mutation is an apply configuration (`Object{...}`, merged as server-side apply does, without owners) or a list of JSON
patch operations (`[JSONPatch{...}]`). Mutations run one after the other, each on what the one before left, and the
policy's variables are computed anew for each. What cannot be evaluated or applied refuses the write or is passed
over, as the policy's failurePolicy says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects.copying import copy_json
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.patch.jsonpatch import Dialect, JsonPatchError, apply_json_patch
from karmada.kube.patch.ownership import OBJECT_META, root_place
from karmada.kube.patch.typed import check, merge_objects
from karmada.kube.schema.decode import DecodeError, normalize
from karmada.kube.schema.node import Node
from karmada.kube.server.admission.conditions import EvaluationFailed, Expression
from karmada.kube.server.admission.interface import Attributes
from karmada.kube.server.admission.matching import GROUP
from karmada.kube.server.admission.mutation import take
from karmada.kube.server.admission.policy_plugin import (
    Bound,
    Misconfigured,
    Policy,
    PolicyPlugin,
    Scope,
    refusal,
    with_variables,
)
from karmada.kube.server.admission.review import taken_back

POLICIES = GroupResource(GROUP, "mutatingadmissionpolicies")
BINDINGS = GroupResource(GROUP, "mutatingadmissionpolicybindings")
_NEVER_MUTATED = ("authentication.k8s.io", "authorization.k8s.io")


class PatchFailed(Exception):
    """A mutation that was computed and cannot be made."""


@dataclass(frozen=True, slots=True, eq=False)
class Mutation:
    is_json_patch: bool
    expression: Expression

    @classmethod
    def of(cls, raw: Obj, scope: Scope) -> Mutation:
        is_json_patch = raw.get("patchType") == "JSONPatch"
        text = (raw.get("jsonPatch" if is_json_patch else "applyConfiguration") or {}).get("expression") or ""
        return cls(is_json_patch, scope.expression(text.strip(), patches=True))

    def patched(self, bindings: dict[str, Any], resource: Resource) -> Obj:
        """Return the object as it should be; raises EvaluationFailed or PatchFailed."""
        obj, wanted = bindings["object"], self.expression.evaluate(bindings)
        if self.is_json_patch:
            return _json_patched(obj, wanted, resource)
        return _applied(obj, wanted, resource)


@dataclass(frozen=True, slots=True, eq=False)
class MutatingPolicy(Policy):
    mutations: tuple[Mutation, ...]
    reinvocable: bool

    @staticmethod
    def actions(_name: str, spec: Obj, scope: Scope) -> dict[str, Any]:
        return {
            "mutations": tuple(Mutation.of(raw, scope) for raw in spec.get("mutations") or ()),
            "reinvocable": spec.get("reinvocationPolicy") == "IfNeeded",
        }


class MutatingPolicies(PolicyPlugin[MutatingPolicy]):
    name = "MutatingAdmissionPolicy"
    policies, bindings, policy = POLICIES, BINDINGS, MutatingPolicy

    def is_exempt(self, attributes: Attributes) -> bool:
        return super().is_exempt(attributes) or attributes.resource.gvk.group in _NEVER_MUTATED

    async def admit(self, attributes: Attributes) -> None:
        if attributes.obj is None:
            return
        rounds = attributes.count_rounds()
        for bound in sorted(self._concerned(attributes), key=lambda bound: (bound.policy.name, bound.binding.name)):
            identity = (self.name, bound.policy.name, bound.binding.name)
            if rounds.takes(identity) and self._selected(bound, attributes):
                changed = await self._mutate(bound, attributes)
                rounds.took(identity, changed=changed, reinvocable=bound.policy.reinvocable)

    async def _mutate(self, bound: Bound[MutatingPolicy], attributes: Attributes) -> bool:
        """Return whether the policy changed the object."""
        changed = False
        try:
            for parameter in await self._parameters(bound, attributes):
                changed = await self._mutate_with(bound, attributes, parameter) or changed
        except Misconfigured as error:
            self._fail(bound, attributes, f"failed to configure binding: {error}")
        except (EvaluationFailed, PatchFailed) as error:
            self._fail(bound, attributes, str(error))
        return changed

    def _fail(self, bound: Bound[MutatingPolicy], attributes: Attributes, why: str) -> None:
        if not bound.policy.fail_open:
            text = f"policy '{bound.policy.name}' with binding '{bound.binding.name}' denied request: {why}"
            raise refusal(attributes, text, "Invalid")

    async def _mutate_with(self, bound: Bound[MutatingPolicy], attributes: Attributes, parameter: Obj | None) -> bool:
        policy, changed = bound.policy, False
        values = {**await self._values(bound, attributes), "params": parameter}
        if not policy.conditions.hold(values):
            return False
        for mutation in policy.mutations:
            values = {**await self._values(bound, attributes), "params": parameter}
            patched = mutation.patched(with_variables(policy.variables, values), bound.resource)
            try:
                changed = take(attributes, await taken_back(attributes, patched, bound.resource)) or changed
            except ApiError as error:
                raise PatchFailed(error.message) from error
        return changed


# --- the two sorts of patches


def _plain(value: Any) -> Any:
    """Return what an expression made, as JSON."""
    from karmada.kube.schema.cel.values import Duration, Timestamp, Uint

    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Timestamp | Duration):
        return str(value)
    return int(value) if isinstance(value, Uint) else value


def _mistyped(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Parts that were made as another type than the path at which they stand."""
    from karmada.kube.schema.cel.values import ObjectValue

    if isinstance(value, ObjectValue):
        expected = ".".join(path)
        if value.type_name != expected:
            where = "which matches field name path from root Object type"
            yield f'unexpected type name "{value.type_name}", expected "{expected}", {where}'
        for key, item in value.items():
            yield from _mistyped(item, (*path, key))
    elif isinstance(value, dict):
        for item in value.values():
            yield from _mistyped(item, path)
    elif isinstance(value, list):
        for item in value:
            yield from _mistyped(item, path)


def _check_types(value: Any, root: str) -> None:
    wrong = next(_mistyped(value, tuple(root.split("."))), "")
    if wrong:
        raise PatchFailed(f"type mismatch: {wrong}")


def _applied(obj: Obj, wanted: Any, resource: Resource) -> Obj:
    _check_types(wanted, "Object")
    node, custom = resource.schema(), resource.custom
    config = {**_plain(wanted), "apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    errors = check(node, config, custom=custom)
    if errors:
        text = errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {error}" for error in errors)])
        raise PatchFailed(f"error applying patch: failed to convert patch object to typed object: {text}")
    atomic = list(_atomic(node, config, ""))
    if atomic:
        what = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise PatchFailed(f"error applying patch: invalid ApplyConfiguration: {what}")
    return copy_json(merge_objects(root_place(node, custom), obj, config))


def _atomic(node: Node | None, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that are merged as a whole, which an apply configuration may not set."""
    if node is None or not isinstance(value, dict | list):
        return
    if path and node.type in ("object", "array") and node.atomic:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            child = OBJECT_META if not path and key == "metadata" else node.properties.get(key) or node.values
            yield from _atomic(child, item, f"{path}.{key}")
    else:
        for index, item in enumerate(value):
            yield from _atomic(node.items, item, f"{path}[{index}]")


def _json_patched(obj: Obj, operations: Any, resource: Resource) -> Obj:
    for operation in operations:
        value = operation.get("value")
        _check_types(value, getattr(value, "type_name", "Object"))
    try:
        patched: Obj = copy_json(apply_json_patch(obj, _plain(operations), Dialect.LENIENT))
        unknown = normalize(resource.schema(), patched, custom=resource.custom)
    except JsonPatchError as error:
        raise PatchFailed(f"JSON Patch: {error.why}") from error
    except (ValueError, DecodeError) as error:
        raise PatchFailed(f"JSON Patch: {error}") from error
    if unknown:
        fields = ", ".join(f'unknown field "{path}"' for path in unknown)
        raise PatchFailed(f"strict decoding error: {fields}")
    return patched

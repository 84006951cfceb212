"""Priority: a Pod's priority comes from its class and from nowhere else; there is one default class at most."""

from __future__ import annotations

from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, is_pod_create, refuse

CLASSES = GroupResource("scheduling.k8s.io", "priorityclasses")
_PREEMPTS = "PreemptLowerPriority"


class Priority(BuiltinPlugin):
    name = "Priority"

    def handles(self, attributes: Attributes) -> bool:
        if attributes.group_resource == CLASSES:
            return attributes.operation in (CREATE, UPDATE) and not attributes.subresource
        return is_pod_create(attributes)

    async def admit(self, attributes: Attributes) -> None:
        if attributes.group_resource == CLASSES or attributes.obj is None:
            return
        spec = attributes.obj["spec"]
        name = spec.get("priorityClassName") or ""
        found = self.reader.get(CLASSES, "", name) if name else self._default()
        if name and found is None:
            raise refuse(attributes, f"no PriorityClass with name {name} was found")
        value, policy = 0, _PREEMPTS
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            value, policy = found.get("value") or 0, found.get("preemptionPolicy") or _PREEMPTS
        self._set(attributes, spec, value, policy)

    def _set(self, attributes: Attributes, spec: Obj, value: int, policy: str) -> None:
        given = spec.get("priority")
        if given is not None and given != value:
            why = (
                f"the integer value of priority ({given}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise refuse(attributes, why)
        wish = spec.get("preemptionPolicy")
        if wish is not None and wish != policy:
            why = (
                f"the string value of PreemptionPolicy ({wish}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise refuse(attributes, why)
        spec["priority"], spec["preemptionPolicy"] = value, policy

    def _default(self) -> Obj | None:
        """Return the default class; of several, which only writes past this plug-in can create, the lowest."""
        found = [entry for entry in self.reader.list(CLASSES) if entry.get("globalDefault")]
        return min(found, key=lambda entry: entry.get("value") or 0, default=None)

    async def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if attributes.group_resource != CLASSES or obj is None or not obj.get("globalDefault"):
            return
        default = self._default()
        if default is not None and default["metadata"]["name"] != obj["metadata"].get("name"):
            name = default["metadata"]["name"]
            raise refuse(attributes, f"PriorityClass {name} is already marked as default. Only one default can exist")

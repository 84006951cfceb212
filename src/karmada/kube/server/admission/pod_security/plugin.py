"""PodSecurity: pods that violate the level that their namespace enforces are refused.

Workloads with a pod template are never refused, only warned about, so that people see it before the pods fail. A
namespace whose enforced level gets stricter is answered with warnings about the pods that are there already.
"""

from __future__ import annotations

from collections.abc import Mapping

from karmada.kube.kinds.podspec import containers_of
from karmada.kube.kinds.resource import Reader
from karmada.kube.objects.errors import Invalid
from karmada.kube.objects.gvk import GroupResource
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.time_slice import in_slices
from karmada.kube.server.admission.interface import CREATE, UPDATE, Attributes
from karmada.kube.server.admission.plugin import BuiltinPlugin, refuse
from karmada.kube.server.admission.pod_security.baseline import SECCOMP_CONTAINER_ANNOTATION, SECCOMP_POD_ANNOTATION
from karmada.kube.server.admission.pod_security.pod import Violation
from karmada.kube.server.admission.pod_security.policy import (
    Configuration,
    LevelVersion,
    Policy,
    is_labelled,
    policy_of,
)
from karmada.kube.server.admission.pod_security.standards import PRIVILEGED, violations

NAMESPACES, PODS = GroupResource("", "namespaces"), GroupResource("", "pods")
TEMPLATES: Mapping[GroupResource, tuple[str, ...]] = {
    GroupResource("", "podtemplates"): ("template",),
    GroupResource("", "replicationcontrollers"): ("spec", "template"),
    GroupResource("apps", "replicasets"): ("spec", "template"),
    GroupResource("apps", "deployments"): ("spec", "template"),
    GroupResource("apps", "statefulsets"): ("spec", "template"),
    GroupResource("apps", "daemonsets"): ("spec", "template"),
    GroupResource("batch", "jobs"): ("spec", "template"),
    GroupResource("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind of workload has its pod template."""
_CHECKED_SUBRESOURCES = ("", "ephemeralcontainers", "resize")
_MOST_PODS = 3000
"""How many pods of a namespace are checked when its level changes."""
_AUDIT = "pod-security.kubernetes.io/"


class PodSecurity(BuiltinPlugin):
    name = "PodSecurity"
    mutates = False

    def __init__(self, reader: Reader, configuration: Configuration | None = None) -> None:
        super().__init__(reader)
        self._configuration = configuration or Configuration()

    def handles(self, attributes: Attributes) -> bool:
        if attributes.operation not in (CREATE, UPDATE):
            return False
        if attributes.group_resource == PODS:
            return attributes.subresource in _CHECKED_SUBRESOURCES
        return not attributes.subresource and (
            attributes.group_resource == NAMESPACES or attributes.group_resource in TEMPLATES
        )

    async def validate(self, attributes: Attributes) -> None:
        obj, resource = attributes.obj, attributes.group_resource
        if obj is None:
            return
        if resource in TEMPLATES:
            self._workload(attributes, obj)
        elif resource == PODS:
            self._pod(attributes, obj)
        else:
            await self._namespace(attributes, obj)

    async def _namespace(self, attributes: Attributes, namespace: Obj) -> None:
        name, labels = namespace["metadata"]["name"], namespace["metadata"].get("labels") or {}
        policy, errors = policy_of(labels, self._configuration.defaults)
        old = attributes.old
        before, errors_before = (
            policy_of(old["metadata"].get("labels"), self._configuration.defaults) if old else (None, [])
        )
        if errors and errors != errors_before:
            raise Invalid.of(attributes.resource.gvk.group_kind, name, errors)
        enforce = policy.enforce
        if before is not None and (
            enforce == before.enforce
            or enforce.level == PRIVILEGED
            or (enforce.version == before.enforce.version and not enforce.is_stricter_than(before.enforce))
        ):
            return
        if name in self._configuration.namespaces:
            self._warn_of_exemption(attributes, name, policy, labels)
        elif before is not None:
            attributes.warnings += await self._warnings_of_pods(name, enforce)

    def _warn_of_exemption(self, attributes: Attributes, name: str, policy: Policy, labels: Mapping[str, str]) -> None:
        if not policy.allows_everything and policy != self._configuration.defaults:
            said = policy.labelled(labels)
            text = f'namespace "{name}" is exempt from Pod Security, and the policy ({said}) will be ignored'
            attributes.warnings.append(text)

    async def _warnings_of_pods(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Return the pods that violate a new level, those with the same reasons in one line."""
        pods = _one_per_owner_first([pod async for pod in self.reader.scan(PODS, namespace)])
        reasons: dict[str, list[str]] = {}
        async for pod in in_slices(pods[:_MOST_PODS]):
            found = violations(enforce.level, enforce.minor, pod["metadata"].get("annotations"), pod["spec"])
            if found and not self._is_exempt_class(pod["spec"]):
                reasons.setdefault(", ".join(v.reason for v in found), []).append(pod["metadata"]["name"])
        warnings: list[str] = []
        if len(pods) > _MOST_PODS:
            counts = f"the first {_MOST_PODS} of {len(pods)} existing pods"
            warnings.append(f"new PodSecurity enforce level only checked against {counts}")
        if reasons:
            text = f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforce}"'
            warnings.append(text)
        return warnings + sorted(f"{_counted(names)}: {text}" for text, names in reasons.items())

    def _pod(self, attributes: Attributes, pod: Obj) -> None:
        if self._is_exempt(attributes):
            return
        policy = self._policy(attributes)
        if policy.allows_everything or (attributes.old is not None and not _is_significant(pod, attributes.old)):
            return
        spec, annotations = pod["spec"], pod["metadata"].get("annotations")
        if self._is_exempt_class(spec):
            return
        attributes.annotations[_AUDIT + "enforce-policy"] = str(policy.enforce)
        self._report(attributes, policy, annotations, spec, enforce=True)

    def _workload(self, attributes: Attributes, workload: Obj) -> None:
        if self._is_exempt(attributes):
            return
        policy = self._policy(attributes)
        if policy.reports_nothing:
            return
        template = workload
        for key in TEMPLATES[attributes.group_resource]:
            template = template.get(key) or {}
        spec = template.get("spec") or {}
        if spec and not self._is_exempt_class(spec):
            annotations = (template.get("metadata") or {}).get("annotations")
            self._report(attributes, policy, annotations, spec, enforce=False)

    def _report(
        self, attributes: Attributes, policy: Policy, annotations: Mapping[str, str] | None, spec: Obj, *, enforce: bool
    ) -> None:
        known: dict[LevelVersion, list[Violation]] = {}

        def found(wanted: LevelVersion) -> str:
            if wanted not in known:
                known[wanted] = violations(wanted.level, wanted.minor, annotations, spec)
            return f'PodSecurity "{wanted}": {", ".join(map(str, known[wanted]))}' if known[wanted] else ""

        audited = found(policy.audit)
        if audited:
            attributes.annotations[_AUDIT + "audit-violations"] = f"would violate {audited}"
        refused = found(policy.enforce) if enforce else ""
        if refused:
            raise refuse(attributes, f"violates {refused}")
        warned = found(policy.warn)
        if warned:
            attributes.warnings.append(f"would violate {warned}")

    def _policy(self, attributes: Attributes) -> Policy:
        namespace = self.reader.get(NAMESPACES, "", attributes.namespace)
        if namespace is None or not is_labelled(labels := namespace["metadata"].get("labels")):
            return self._configuration.defaults
        policy, errors = policy_of(labels, self._configuration.defaults)
        if errors:
            attributes.annotations[_AUDIT + "error"] = f"Failed to parse policy: {errors[0]}"
        return policy

    def _is_exempt(self, attributes: Attributes) -> bool:
        configuration = self._configuration
        return attributes.namespace in configuration.namespaces or attributes.user.name in configuration.usernames

    def _is_exempt_class(self, spec: Obj) -> bool:
        return spec.get("runtimeClassName") in self._configuration.runtime_classes


def _one_per_owner_first(pods: list[Obj]) -> list[Obj]:
    """Pods of one controller are alike: one of each comes before the others."""
    first: list[Obj] = []
    others: list[Obj] = []
    seen: set[str | None] = set()
    for pod in pods:
        owner = next((o.get("uid") for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None)
        (others if owner is not None and owner in seen else first).append(pod)
        seen.add(owner)
    return first + others


def _counted(names: list[str]) -> str:
    more = len(names) - 1
    if not more:
        return names[0]
    return f"{names[0]} (and {more} other {'pod' if more == 1 else 'pods'})"


def _is_significant(pod: Obj, old: Obj) -> bool:
    """Return whether an update changes something that the standards check: images, seccomp, new containers."""
    return _checked_fields(pod) != _checked_fields(old)


def _checked_fields(pod: Obj) -> list[tuple[str, str, str]]:
    annotations = pod["metadata"].get("annotations") or {}
    containers = [(c.get("name") or "", c.get("image") or "") for c in containers_of(pod["spec"])]
    own = [("", "", annotations.get(SECCOMP_POD_ANNOTATION, ""))]
    return own + [(name, image, annotations.get(SECCOMP_CONTAINER_ANNOTATION + name, "")) for name, image in containers]

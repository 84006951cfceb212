"""The checks of the level restricted."""

from __future__ import annotations

from karmada.kube.objects.types import Obj
from karmada.kube.server.admission.pod_security.baseline import added, added_detail, seccomp
from karmada.kube.server.admission.pod_security.pod import Pod, Violation, named, plural, quoted, setters, where


def privilege_escalation(pod: Pod) -> Violation | None:
    found = where(pod, lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not found:
        return None
    detail = f"{named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def restricted_capabilities(pod: Pod) -> Violation | None:
    keeping = where(pod, lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ()))
    adding, capabilities = added(pod, frozenset({"NET_BIND_SERVICE"}))
    details = []
    if keeping:
        details.append(f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        details.append(added_detail(adding, capabilities))
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


_VOLUMES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def restricted_volumes(pod: Pod) -> Violation | None:
    found = {
        v.get("name") or "": next((kind for kind in _OTHER_VOLUMES if v.get(kind) is not None), "unknown")
        for v in pod.spec.get("volumes") or ()
        if all(v.get(kind) is None for kind in _VOLUMES)
    }
    if not found:
        return None
    types = sorted(set(found.values()))
    volumes = f"{plural('volume', 'volumes', len(found))} {quoted(found)}"
    noun = plural("restricted volume type", "restricted volume types", len(types))
    return Violation("restricted volume types", f"{volumes} {plural('uses', 'use', len(found))} {noun} {quoted(types)}")


def run_as_non_root(pod: Pod) -> Violation | None:
    own = pod.context.get("runAsNonRoot")
    explicit = where(pod, lambda context: context.get("runAsNonRoot") is False)
    reason = "runAsNonRoot != true"
    if own is False or explicit:
        return Violation(reason, f"{setters(own is False, explicit)} must not set securityContext.runAsNonRoot=false")
    unset = where(pod, lambda context: context.get("runAsNonRoot") is None) if own is None else []
    if not unset:
        return None
    return Violation(reason, f"pod or {named(unset)} must set securityContext.runAsNonRoot=true")


def run_as_user(pod: Pod) -> Violation | None:
    def wrong(context: Obj) -> bool:
        return context.get("runAsUser") == 0

    containers = where(pod, wrong)
    if not containers and not wrong(pod.context):
        return None
    return Violation("runAsUser=0", f"{setters(wrong(pod.context), containers)} must not set runAsUser=0")


def restricted_seccomp(pod: Pod) -> Violation | None:
    explicit = seccomp(pod)
    if explicit is not None or pod.context.get("seccompProfile"):
        return explicit
    unset = where(pod, lambda context: context.get("seccompProfile") is None)
    if not unset:
        return None
    detail = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {named(unset)} {detail}")

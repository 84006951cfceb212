"""PodSecurity: the standards by level and version, the labels of a namespace, and what a write is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from karmada.kube.objects.errors import Forbidden, Invalid
from karmada.kube.server.admission.pod_security.plugin import PodSecurity
from karmada.kube.server.admission.pod_security.policy import PREFIX, Configuration, LevelVersion, Policy, policy_of
from karmada.kube.server.admission.pod_security.standards import violations
from tests.support.cases import cases

AttributesOf = Callable[..., Any]
SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def spec(*contexts: dict[str, Any], **more: Any) -> dict[str, Any]:
    names = "ab"
    return {"containers": [{"name": names[i], "securityContext": c} for i, c in enumerate(contexts)], **more}


def found(level: str, pod: dict[str, Any], minor: int | None = None, annotations: Any = None) -> list[str]:
    return [str(violation) for violation in violations(level, minor, annotations, pod)]


BASELINE = [
    (spec({}, hostNetwork=True, hostIPC=True), "host namespaces (hostNetwork=true, hostIPC=true)"),
    (
        spec({"privileged": True}, {"privileged": True}),
        'privileged (containers "a", "b" must not set securityContext.privileged=true)',
    ),
    (
        spec({"capabilities": {"add": ["SYS_TIME", "NET_RAW", "CHOWN"]}}),
        'non-default capabilities (container "a" must not include "NET_RAW", "SYS_TIME" in '
        "securityContext.capabilities.add)",
    ),
    (spec({}, volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
    (
        {"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 1}]}]},
        'hostPort (container "a" uses hostPorts 443, 80)',
    ),
    (
        {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}]},
        'probe or lifecycle host (container "a" uses probe or lifecycle host "10.0.0.1")',
    ),
    (
        spec({"appArmorProfile": {"type": "Unconfined"}}, securityContext={"appArmorProfile": {"type": "Unconfined"}}),
        'forbidden AppArmor profile (pod and container "a" must not set AppArmor profile type to "Unconfined")',
    ),
    (
        spec({"seccompProfile": {"type": "Unconfined"}}),
        'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        spec({"seLinuxOptions": {"type": "spc_t", "role": "r"}}, securityContext={"seLinuxOptions": {"user": "u"}}),
        'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: type "spc_t"; '
        "user may not be set; role may not be set)",
    ),
    (
        spec({}, securityContext={"sysctls": [{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}]}),
        "forbidden sysctls (kernel.msgmax)",
    ),
    (
        spec({"procMount": "Unmasked"}),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        spec({"windowsOptions": {"hostProcess": True}}),
        'hostProcess (container "a" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
]


@pytest.mark.parametrize(("pod", "expected"), BASELINE)
def test_what_baseline_forbids(pod: dict[str, Any], expected: str) -> None:
    assert found("baseline", pod) == [expected]
    assert found("privileged", pod) == []


def test_what_restricted_demands() -> None:
    assert found("restricted", spec(SAFE, SAFE)) == []
    assert found("restricted", spec({})) == [
        'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)',
        'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"])',
        'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)',
        'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")',
    ]
    volumes = [{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {}}, {"name": "ok", "emptyDir": {}}]
    assert found("restricted", spec({**SAFE, "runAsUser": 0}, volumes=volumes)) == [
        'restricted volume types (volumes "v", "w" use restricted volume types "hostPath", "nfs")',
        'runAsUser=0 (container "a" must not set runAsUser=0)',
    ]
    assert found("restricted", spec(SAFE, securityContext={"runAsNonRoot": False})) == [
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"
    ]


@cases(
    (spec({"seLinuxOptions": {"type": "container_engine_t"}}), 30, 31),
    (spec({}, securityContext={"sysctls": [{"name": "net.ipv4.tcp_wmem"}]}), 31, 32),
    (spec({"procMount": "Unmasked"}, hostUsers=False), 34, 35),
)
def test_a_pinned_version_keeps_the_rules_of_its_time(pod: dict[str, Any], before: int, since: int) -> None:
    assert len(found("baseline", pod, before)) == 1
    assert found("baseline", pod, since) == []
    assert found("baseline", pod, 999) == []


def test_windows_pods_need_no_linux_settings_since_1_25() -> None:
    pod = spec({"runAsNonRoot": True}, os={"name": "windows"})
    assert len(found("restricted", pod, 24)) == 3
    assert found("restricted", pod) == []


# --- labels


def labels(**modes: str) -> dict[str, str]:
    return {PREFIX + key.replace("_", "-"): value for key, value in modes.items()}


def test_who_enforces_a_level_is_warned_of_it_too() -> None:
    policy, _ = policy_of(labels(enforce="baseline", enforce_version="v1.30"), Policy())
    assert (str(policy.warn), str(policy.audit)) == ("baseline:v1.30", "privileged:latest")
    policy, _ = policy_of(labels(enforce="baseline", warn="restricted"), Policy())
    assert str(policy.warn) == "restricted:latest"


def test_an_unreadable_level_is_the_strictest_to_enforce_and_none_to_warn() -> None:
    policy, errors = policy_of(labels(enforce="odd", warn="odd", audit_version="1.30"), Policy())
    assert (policy.enforce.level, policy.warn.level) == ("restricted", "privileged")
    assert [error.field for error in errors] == [
        f"metadata.labels[{PREFIX}{key}]" for key in ("enforce", "audit-version", "warn")
    ]
    assert errors[1].body == 'Invalid value: "1.30": must be "latest" or "v1.x"'


# --- writes


def namespace(reader: Any, **modes: str) -> None:
    reader.put("", "namespaces", {"metadata": {"name": "ns", "labels": labels(**modes)}})


async def admitted(plugin: PodSecurity, attributes: Any) -> list[str]:
    assert plugin.handles(attributes)
    await plugin.validate(attributes)
    return list(attributes.warnings)


async def test_a_pod_that_violates_the_enforced_level_is_refused_and_not_warned_of(
    reader: Any, attributes_of: AttributesOf
) -> None:
    namespace(reader, enforce="baseline", warn="restricted")
    attributes = attributes_of("CREATE", "pods", {"spec": spec({"privileged": True})})
    with pytest.raises(Forbidden) as caught:
        await admitted(PodSecurity(reader), attributes)
    assert caught.value.message == (
        'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged (container "a" must not set '
        "securityContext.privileged=true)"
    )
    assert attributes.warnings == []
    assert attributes.annotations[PREFIX + "enforce-policy"] == "baseline:latest"


async def test_a_workload_is_only_warned_of(reader: Any, attributes_of: AttributesOf) -> None:
    namespace(reader, enforce="baseline", audit="restricted")
    template = {"spec": {"template": {"spec": spec({**SAFE, "privileged": True})}}}
    attributes = attributes_of("CREATE", "deployments", template)
    detail = 'privileged (container "a" must not set securityContext.privileged=true)'
    assert await admitted(PodSecurity(reader), attributes) == [f'would violate PodSecurity "baseline:latest": {detail}']
    audited = f'would violate PodSecurity "restricted:latest": {detail}'
    assert attributes.annotations == {PREFIX + "audit-violations": audited}


async def test_an_update_that_touches_nothing_the_standards_look_at_passes(
    reader: Any, attributes_of: AttributesOf
) -> None:
    namespace(reader, enforce="restricted")
    old, new = {"spec": spec({})}, {"metadata": {"labels": {"a": "b"}}, "spec": spec({})}
    assert await admitted(PodSecurity(reader), attributes_of("UPDATE", "pods", new, old)) == []
    changed = {"spec": {"containers": [{"name": "a", "image": "other"}]}}
    with pytest.raises(Forbidden):
        await admitted(PodSecurity(reader), attributes_of("UPDATE", "pods", changed, old))
    assert not PodSecurity(reader).handles(attributes_of("UPDATE", "pods", changed, old, subresource="status"))


async def test_labels_that_are_wrong_refuse_the_namespace_unless_they_were_wrong_before(
    reader: Any, attributes_of: AttributesOf
) -> None:
    odd = {"metadata": {"name": "ns", "labels": labels(enforce="odd")}}
    with pytest.raises(Invalid):
        await admitted(PodSecurity(reader), attributes_of("CREATE", "namespaces", odd, name="ns"))
    assert await admitted(PodSecurity(reader), attributes_of("UPDATE", "namespaces", odd, odd, name="ns")) == []


async def test_a_stricter_level_warns_of_the_pods_that_are_there(reader: Any, attributes_of: AttributesOf) -> None:
    for name in ("p1", "p2", "p3"):
        reader.put("", "pods", {"metadata": {"name": name, "namespace": "ns"}, "spec": spec({"privileged": True})})
    reader.put("", "pods", {"metadata": {"name": "n", "namespace": "ns"}, "spec": spec({}, hostPID=True)})
    new = {"metadata": {"name": "ns", "labels": labels(enforce="baseline")}}
    old = {"metadata": {"name": "ns"}}
    assert await admitted(PodSecurity(reader), attributes_of("UPDATE", "namespaces", new, old, name="ns")) == [
        'existing pods in namespace "ns" violate the new PodSecurity enforce level "baseline:latest"',
        "n: host namespaces",
        "p1 (and 2 other pods): privileged",
    ]
    assert await admitted(PodSecurity(reader), attributes_of("UPDATE", "namespaces", old, new, name="ns")) == []


CONFIGURATION = {
    "apiVersion": "pod-security.admission.config.k8s.io/v1",
    "kind": "PodSecurityConfiguration",
    "defaults": {"enforce": "baseline", "enforce-version": "v1.30"},
    "exemptions": {"usernames": ["alice"], "namespaces": ["free"], "runtimeClasses": ["sandbox"]},
}


async def test_configuration_gives_defaults_and_exemptions(reader: Any, attributes_of: AttributesOf) -> None:
    configuration = Configuration.of(CONFIGURATION)
    assert configuration.defaults.enforce == LevelVersion("baseline", "v1.30")
    plugin = PodSecurity(reader, configuration)
    bad = {"spec": spec({"privileged": True})}
    assert await admitted(plugin, attributes_of("CREATE", "pods", bad)) == []  # alice
    nobody = PodSecurity(reader, Configuration.of({**CONFIGURATION, "exemptions": {"runtimeClasses": ["sandbox"]}}))
    with pytest.raises(Forbidden, match=r"baseline:v1\.30"):
        await admitted(nobody, attributes_of("CREATE", "pods", bad))
    bad["spec"]["runtimeClassName"] = "sandbox"
    assert await admitted(nobody, attributes_of("CREATE", "pods", bad)) == []


async def test_a_policy_on_an_exempt_namespace_is_reported_as_without_effect(
    reader: Any, attributes_of: AttributesOf
) -> None:
    new = {"metadata": {"name": "free", "labels": labels(enforce="restricted", warn_version="v1.20")}}
    plugin = PodSecurity(reader, Configuration.of(CONFIGURATION))
    [warning] = await admitted(plugin, attributes_of("CREATE", "namespaces", new, name="free"))
    assert warning == (
        'namespace "free" is exempt from Pod Security, and the policy (enforce=restricted:v1.30, '
        "warn=restricted:v1.20) will be ignored"
    )


@cases({"kind": "Other"}, {"defaults": {"warn": "odd"}}, {"defaults": {"warn-version": "1"}})
def test_a_configuration_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="PodSecurity: "):
        Configuration.of({**CONFIGURATION, **bad})

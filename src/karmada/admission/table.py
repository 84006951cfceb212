"""All hooks: which rules validate and default which kinds, and their names outside.

A rule's module is imported when the rule first runs, so that listing the hooks costs only this table. Names and paths
are those that Karmada registers, so that refusals read alike and a webhook configuration of one fits the other; the few
for kinds and forms that Karmada no longer has are marked `older`.
"""

from __future__ import annotations

from karmada.admission.context import CREATE, DELETE, UPDATE
from karmada.admission.hooks import Hook, Mutate, Rule, Validate
from karmada.api.well_known import DELETION_PROTECTED
from karmada.kube.objects.gvk import GroupResource

_POLICY, _WORK, _CONFIG = "policy.karmada.io", "work.karmada.io", "config.karmada.io"
_NETWORKING, _AUTOSCALING = "networking.karmada.io", "autoscaling.karmada.io"


def _mutating(
    group: str,
    plural: str,
    kind: str,
    mutate: Mutate,
    *,
    name: str = "",
    operations: tuple[str, ...] = (CREATE, UPDATE),
    older: bool = False,
) -> Hook:
    return Hook(
        name=name or f"{kind}.karmada.io",
        path=f"/mutate-{kind}",
        resource=GroupResource(group, plural),
        operations=operations,
        mutate=mutate,
        older=older,
    )


def _validating(
    group: str,
    plural: str,
    kind: str,
    validate: Validate,
    *,
    name: str = "",
    seconds: int = 3,
    side_effects: str = "None",
    older: bool = False,
) -> Hook:
    return Hook(
        name=name or f"{kind}.karmada.io",
        path=f"/validate-{kind}",
        resource=GroupResource(group, plural),
        validate=validate,
        seconds=seconds,
        side_effects=side_effects,
        older=older,
    )


_RSP, _CLUSTER_RSP = "replicaschedulingpolicy", "clusterreplicaschedulingpolicy"

MUTATING: tuple[Hook, ...] = (
    _mutating(_POLICY, "propagationpolicies", "propagationpolicy", Rule("propagation", "mutate")),
    _mutating(
        _POLICY, "clusterpropagationpolicies", "clusterpropagationpolicy", Rule("propagation", "mutate_cluster_wide")
    ),
    _mutating(_POLICY, "overridepolicies", "overridepolicy", Rule("overrides", "mutate")),
    _mutating(_WORK, "resourcebindings", "resourcebinding", Rule("bindings", "mutate"), operations=(CREATE,)),
    _mutating(
        _WORK,
        "clusterresourcebindings",
        "clusterresourcebinding",
        Rule("bindings", "mutate_cluster_wide"),
        operations=(CREATE,),
    ),
    _mutating(_WORK, "works", "work", Rule("work", "mutate")),
    _mutating(_AUTOSCALING, "federatedhpas", "federatedhpa", Rule("autoscaling", "mutate"), name=_AUTOSCALING),
    _mutating(_NETWORKING, "multiclusterservices", "multiclusterservice", Rule("services", "mutate")),
    _mutating(_NETWORKING, "multiclusteringresses", "multiclusteringress", Rule("ingresses", "mutate"), older=True),
    _mutating(_POLICY, "replicaschedulingpolicies", _RSP, Rule("replica_scheduling", "mutate"), older=True),
)

VALIDATING: tuple[Hook, ...] = (
    _validating(_POLICY, "propagationpolicies", "propagationpolicy", Rule("propagation", "validate")),
    _validating(
        _POLICY, "clusterpropagationpolicies", "clusterpropagationpolicy", Rule("propagation", "validate_cluster_wide")
    ),
    _validating(_POLICY, "overridepolicies", "overridepolicy", Rule("overrides", "validate")),
    _validating(
        _POLICY, "clusteroverridepolicies", "clusteroverridepolicy", Rule("overrides", "validate_cluster_wide")
    ),
    _validating(
        _CONFIG,
        "resourceinterpreterwebhookconfigurations",
        "resourceinterpreterwebhookconfiguration",
        Rule("interpreter_webhooks", "validate"),
        name=_CONFIG,
    ),
    _validating(
        _CONFIG,
        "resourceinterpretercustomizations",
        "resourceinterpretercustomization",
        Rule("interpreter", "validate"),
        seconds=10,
    ),
    _validating(_POLICY, "federatedresourcequotas", "federatedresourcequota", Rule("quota", "validate")),
    _validating(_NETWORKING, "multiclusteringresses", "multiclusteringress", Rule("ingresses", "validate")),
    _validating(_AUTOSCALING, "federatedhpas", "federatedhpa", Rule("autoscaling", "validate")),
    _validating(_AUTOSCALING, "cronfederatedhpas", "cronfederatedhpa", Rule("cron", "validate")),
    _validating(_NETWORKING, "multiclusterservices", "multiclusterservice", Rule("services", "validate")),
    _validating(
        _WORK, "resourcebindings", "resourcebinding", Rule("bindings", "validate"), side_effects="NoneOnDryRun"
    ),
    _validating(_POLICY, "clustertaintpolicies", "clustertaintpolicy", Rule("taints", "validate")),
    Hook(
        name="resourcedeletionprotection.karmada.io",
        path="/validate-resourcedeletionprotection",
        resource=GroupResource("*", "*"),
        operations=(DELETE,),
        validate=Rule("deletion_protection", "validate"),
        label=DELETION_PROTECTED,
    ),
    _validating(_POLICY, "replicaschedulingpolicies", _RSP, Rule("replica_scheduling", "validate"), older=True),
    _validating(_CONFIG, "replicaschedulingpolicies", _CLUSTER_RSP, Rule("replica_scheduling", "validate"), older=True),
)

PROTECTION = next(hook for hook in VALIDATING if hook.label)
HOOKS: tuple[Hook, ...] = (*MUTATING, *VALIDATING)

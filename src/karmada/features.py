"""The feature gates of the control plane, with their defaults."""

from __future__ import annotations

from karmada.kube.runtime.features import Feature, FeatureGates, Stage

FEATURES = {
    "Failover": Feature(False, Stage.BETA),
    "GracefulEviction": Feature(True, Stage.BETA),
    "PropagateDeps": Feature(True, Stage.BETA),
    "CustomizedClusterResourceModeling": Feature(True, Stage.BETA),
    "PropagationPolicyPreemption": Feature(False, Stage.ALPHA),
    "MultiClusterService": Feature(False, Stage.ALPHA),
    "ResourceQuotaEstimate": Feature(False, Stage.ALPHA),
    "StatefulFailoverInjection": Feature(False, Stage.ALPHA),
    "PriorityBasedScheduling": Feature(False, Stage.ALPHA),
    "FederatedQuotaEnforcement": Feature(False, Stage.ALPHA),
    "MultiplePodTemplatesScheduling": Feature(False, Stage.ALPHA),
    "ControllerPriorityQueue": Feature(True, Stage.BETA),
    "WorkloadAffinity": Feature(False, Stage.ALPHA),
    "SchedulingOvercommitProtection": Feature(False, Stage.ALPHA),
    "LoggingAlphaOptions": Feature(False, Stage.ALPHA),
    "LoggingBetaOptions": Feature(True, Stage.BETA),
    "ContextualLogging": Feature(True, Stage.BETA),
}


def default_gates() -> FeatureGates:
    return FeatureGates(FEATURES)

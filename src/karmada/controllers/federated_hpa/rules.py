"""The rules of FederatedHPAs, by the flags."""

from __future__ import annotations

from typing import Final

from karmada.controllers.context import Settings
from karmada.kube.autoscaling.replicas import Rules

_NO_SAMPLES: Final = "did not receive metrics for any ready pods"


def rules_of(settings: Settings, calibration: float = 1.0) -> Rules:
    """`calibration` is the part of all replicas that is in sight."""
    tolerance = settings.horizontal_pod_autoscaler_tolerance
    return Rules(
        tolerates=lambda ratio: abs(1.0 - ratio) <= tolerance,
        calibration=calibration,
        cpu_initialization=settings.horizontal_pod_autoscaler_cpu_initialization_period,
        initial_readiness=settings.horizontal_pod_autoscaler_initial_readiness_delay,
        no_values=_NO_SAMPLES,
    )

"""The reconcilers of the detector, in the order in which they start."""

from __future__ import annotations

from karmada.controllers.context import Context
from karmada.controllers.detector.claims import BOTH
from karmada.controllers.detector.detector import Detector
from karmada.controllers.detector.interpretation import ReplicaInterpreter
from karmada.controllers.detector.policy import PolicyController
from karmada.controllers.detector.replica_policies import KINDS
from karmada.controllers.detector.rescheduling import Rescheduling
from karmada.controllers.detector.shared_policies import SharedPolicies
from karmada.kube.runtime.controller import Reconciler


def detector_parts(context: Context, interpreter: ReplicaInterpreter) -> list[Reconciler]:
    detector = Detector(context, interpreter)
    return [
        detector.kinds,
        detector,
        *(PolicyController(context, detector, kind) for kind in BOTH),
        *(Rescheduling(context, detector.kinds, kind) for kind in KINDS),
        *([SharedPolicies(detector)] if context.shares_work else []),
    ]

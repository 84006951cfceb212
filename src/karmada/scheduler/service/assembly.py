"""How the algorithm is assembled: plug-ins and estimators by flags and gates.

The same for a running scheduler and for a prediction of what one would do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from karmada.kube.runtime.features import FeatureGates
from karmada.scheduler.algorithm import Profile
from karmada.scheduler.estimators.general import GeneralEstimator
from karmada.scheduler.estimators.protocol import Estimator, LocalEstimator, RemoteEstimator, divided
from karmada.scheduler.meter import NO_METRICS, Meter
from karmada.scheduler.plugins import EVERYTHING, builtin, discover, estimators_of, profile_of


class Algorithm(NamedTuple):
    profile: Profile
    local: Sequence[LocalEstimator]
    remote: Sequence[RemoteEstimator]


def assemble(
    gates: FeatureGates,
    plugins: Sequence[str] = (EVERYTHING,),
    *,
    propagate_empty: bool = False,
    estimators: Sequence[Estimator] = (),
    meter: Meter = NO_METRICS,
) -> Algorithm:
    """`estimators` are used besides the general one and those of plug-ins. Raises PluginError."""
    registry = discover(builtin(workload_affinity=gates.enabled("WorkloadAffinity")))
    components = gates.enabled("MultiplePodTemplatesScheduling")
    profile = profile_of(registry, plugins, components=components, propagate_empty=propagate_empty, meter=meter)
    local, remote = divided([*estimators, *estimators_of(registry, plugins)])
    general = GeneralEstimator(models=gates.enabled("CustomizedClusterResourceModeling"))
    return Algorithm(profile, [general, *local], remote)

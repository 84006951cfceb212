"""The list of the controllers of claims and volumes."""

from __future__ import annotations

from karmada.kube.runtime.controller import Reconciler
from karmada.kube.sim.context import Context
from karmada.kube.sim.controllers.volumes_binder import VolumeBinder
from karmada.kube.sim.controllers.volumes_ephemeral import EphemeralVolumes
from karmada.kube.sim.controllers.volumes_expansion import VolumeExpansion
from karmada.kube.sim.controllers.volumes_protection import protections
from karmada.kube.sim.controllers.volumes_provisioner import VolumeProvisioner


def volume_controllers(context: Context) -> list[Reconciler]:
    return [
        VolumeBinder(context),
        VolumeProvisioner(context),
        *protections(context),
        VolumeExpansion(context),
        EphemeralVolumes(context),
    ]

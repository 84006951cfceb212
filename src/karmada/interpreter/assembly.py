"""The interpreter with all its layers, as the control plane, its agents and the command line use it.

From the top: what users declare (see `sources`), Python plug-ins, third-party kinds, Kubernetes' own.
"""

from __future__ import annotations

from karmada.interpreter.interpreter import Interpreter, Layer
from karmada.interpreter.native.layer import Native
from karmada.interpreter.plugins import Plugins, installed
from karmada.interpreter.thirdparty.layer import ThirdParty
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.runtime.features import FeatureGates


def built_in_layers(clock: Clock = SYSTEM, gates: FeatureGates | None = None) -> list[Layer]:
    """Return the layers below what users declare, above the native one; raise PluginError for a broken plug-in."""
    plugins = installed()
    return [*([Plugins(plugins)] if plugins else []), ThirdParty(clock, gates)]


def interpreter_with(clock: Clock, gates: FeatureGates, *declared: Layer) -> Interpreter:
    """Return the interpreter with `declared` layers above the built-in ones."""
    return Interpreter([*declared, *built_in_layers(clock, gates)], native=Native(clock, gates))

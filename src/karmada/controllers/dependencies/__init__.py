"""The dependencies distributor: propagates what templates depend on to the same clusters."""

from karmada.controllers.context import Context
from karmada.controllers.dependencies.distributor import DependencyInterpreter, Distributor
from karmada.kube.runtime.controller import Reconciler

__all__ = ["Distributor", "dependency_parts"]


def dependency_parts(context: Context, interpreter: DependencyInterpreter) -> list[Reconciler]:
    """Return nothing when the feature is switched off."""
    return [Distributor(context, interpreter)] if context.gates.enabled("PropagateDeps") else []

"""The second half of propagation, put together: from bindings with clusters to members, and their status back."""

from __future__ import annotations

from karmada.controllers.binding.controller import Binding
from karmada.controllers.binding.kinds import KINDS
from karmada.controllers.binding_status.controller import BindingStatus
from karmada.controllers.binding_status.template_status import TemplateStatus
from karmada.controllers.context import Context
from karmada.controllers.execution.controller import Execution
from karmada.controllers.templates import Templates
from karmada.interpreter.interpreter import Interpreter
from karmada.kube.runtime.controller import Reconciler
from karmada.kube.runtime.manager import Component
from karmada.overrides.engine import Overrides
from karmada.overrides.hook import Override
from karmada.overrides.triggers import Triggers


def propagation_parts(
    context: Context, interpreter: Interpreter, override: Override | None = None, overrides: Overrides | None = None
) -> list[Reconciler | Component]:
    """Reconcilers for a Manager, and a component that needs the lease as they do (`needs_leader`).

    `override` makes of a template what a cluster gets; `overrides` is the engine whose policies are watched.
    """
    templates = Templates(context)
    engine = overrides or Overrides(context.informers)
    informers = context.informers
    template_status = TemplateStatus(interpreter, templates)
    return [
        *(
            Binding(
                context, kind, interpreter, templates, Triggers(informers, kind.gvr, engine, templates.light), override
            )
            for kind in KINDS
        ),
        Execution(context, interpreter),
        *(BindingStatus(context, kind, template_status) for kind in KINDS),
    ]

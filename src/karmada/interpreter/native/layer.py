"""The native layer: looks the kind up in the table of the operation and lets that answer.

Its methods are plain functions, since nothing here has to be waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karmada.api.interpreter_context import Operation
from karmada.features import default_gates
from karmada.interpreter import operations
from karmada.interpreter.dependencies import verify_dependencies
from karmada.interpreter.native.aggregation import AGGREGATORS, Aggregator, with_status
from karmada.interpreter.native.aggregation_job import job_status
from karmada.interpreter.native.dependencies import FINDERS
from karmada.interpreter.native.deployment_conditions import with_conditions
from karmada.interpreter.native.fields import section
from karmada.interpreter.native.health import VERDICTS
from karmada.interpreter.native.kinds import DEPLOYMENT, JOB
from karmada.interpreter.native.reflection import REFLECTORS, whole_status
from karmada.interpreter.native.replicas import COUNTS, FIELDS, revised
from karmada.interpreter.native.retention import RETAINERS
from karmada.interpreter.operations import InterpreterError, Replicas, Report, report_of
from karmada.interpreter.requirements import pod_requirements
from karmada.kube.objects.clock import SYSTEM, Clock
from karmada.kube.objects.gvk import GVK, gvk_of
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.features import FeatureGates


class Native:
    def __init__(self, clock: Clock = SYSTEM, gates: FeatureGates | None = None) -> None:
        self._clock = clock
        self._gates = gates or default_gates()
        self._aggregators: dict[GVK, Aggregator] = {
            **AGGREGATORS,
            DEPLOYMENT: self._deployment_status,
            JOB: self._job_status,
        }
        self._tables: dict[Operation, Mapping[GVK, Any]] = {
            operations.INTERPRET_REPLICA: COUNTS,
            operations.REVISE_REPLICA: FIELDS,
            operations.RETAIN: RETAINERS,
            operations.AGGREGATE_STATUS: self._aggregators,
            operations.INTERPRET_DEPENDENCY: FINDERS,
            operations.INTERPRET_HEALTH: VERDICTS,
        }

    def enabled(self, gvk: GVK, operation: Operation) -> bool:
        """Return whether the layer has an operation: reflecting a status for every kind, others by the kind."""
        return operation == operations.INTERPRET_STATUS or gvk in self._tables.get(operation, ())

    def get_replicas(self, obj: Obj) -> Replicas:
        count_of = COUNTS.get(gvk_of(obj))
        if count_of is None:
            raise _unknown(operations.INTERPRET_REPLICA, obj)
        count, pod = count_of(section(obj, "spec"))
        return Replicas(count, pod_requirements(pod, priority_class=self._gates.enabled("ResourceQuotaEstimate")))

    def revise_replica(self, obj: Obj, replicas: int) -> Obj:
        field = FIELDS.get(gvk_of(obj))
        if field is None:
            raise _unknown(operations.REVISE_REPLICA, obj)
        return revised(obj, field, replicas)

    def retain(self, desired: Obj, observed: Obj) -> Obj:
        retainer = RETAINERS.get(gvk_of(desired))
        if retainer is None:
            raise _unknown(operations.RETAIN, desired)
        return retainer(desired, observed)

    def aggregate_status(self, obj: Obj, items: Sequence[Obj]) -> Obj:
        aggregator = self._aggregators.get(gvk_of(obj))
        if aggregator is None:
            raise _unknown(operations.AGGREGATE_STATUS, obj)
        return with_status(obj, aggregator(obj, [report_of(item) for item in items]))

    def get_dependencies(self, obj: Obj) -> list[Obj]:
        finder = FINDERS.get(gvk_of(obj))
        if finder is None:
            raise InterpreterError(f"default interpreter for operation {operations.INTERPRET_DEPENDENCY} not found")
        found = finder(obj)
        verify_dependencies(found)
        return found

    def reflect_status(self, obj: Obj) -> Obj | None:
        status = whole_status(obj)
        reflector = REFLECTORS.get(gvk_of(obj))
        return status if reflector is None or status is None else reflector(obj, status)

    def interpret_health(self, obj: Obj) -> bool:
        verdict = VERDICTS.get(gvk_of(obj))
        if verdict is None:
            raise _unknown(operations.INTERPRET_HEALTH, obj)
        return verdict(obj, section(obj, "status"))

    def _deployment_status(self, obj: Obj, reports: Sequence[Report]) -> Obj | None:
        counted = AGGREGATORS[DEPLOYMENT](obj, reports)
        status = section(obj, "status") if counted is None else counted
        return with_conditions(obj, status, reports, self._clock.now())

    def _job_status(self, obj: Obj, reports: Sequence[Report]) -> Obj | None:
        return job_status(obj, reports, self._clock.now())


def _unknown(operation: Operation, obj: Obj) -> InterpreterError:
    group, version, kind = gvk_of(obj)
    return InterpreterError(f'default {operation} interpreter for "{group}/{version}, Kind={kind}" not found')

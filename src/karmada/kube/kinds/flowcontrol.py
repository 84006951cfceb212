"""FlowSchemas and PriorityLevelConfigurations: defaults and rules. They are stored; requests are not queued by them."""

from __future__ import annotations

from karmada.kube.kinds import checks
from karmada.kube.kinds.filling import fill, part
from karmada.kube.kinds.resource import Strategy
from karmada.kube.objects import names
from karmada.kube.objects.errors import FieldError, FieldErrors, forbidden_field, invalid, not_supported, required
from karmada.kube.objects.types import Obj

PRECEDENCE, MOST_PRECEDENCE = 1000, 10_000
_QUEUING = (("queues", 64), ("handSize", 8), ("queueLengthLimit", 50))
_TYPES, _RESPONSES = ("Exempt", "Limited"), ("Queue", "Reject")
_DISTINGUISHERS = ("ByNamespace", "ByUser")


def default_flow_schema(obj: Obj) -> None:
    fill(part(obj, "spec"), matchingPrecedence=PRECEDENCE)


def default_priority_level(obj: Obj) -> None:
    spec = part(obj, "spec")
    limited, exempt = spec.get("limited"), spec.get("exempt")
    if exempt is not None:
        fill(exempt, nominalConcurrencyShares=0, lendablePercent=0)
    if limited is None:
        return
    fill(limited, nominalConcurrencyShares=30, lendablePercent=0)
    queuing = part(limited, "limitResponse").get("queuing")
    if queuing is not None:
        for key, value in _QUEUING:
            if not queuing.get(key):
                queuing[key] = value


def validate_flow_schema(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    precedence = spec.get("matchingPrecedence") or 0
    if precedence <= 0:
        errors.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    if precedence > MOST_PRECEDENCE:
        detail = f"must not be greater than {MOST_PRECEDENCE}"
        errors.append(invalid("spec.matchingPrecedence", precedence, detail))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _DISTINGUISHERS:
        errors.append(not_supported("spec.distinguisherMethod", method, _DISTINGUISHERS))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name")
    if not level:
        errors.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    else:
        path = "spec.priorityLevelConfiguration.name"
        checks.add_invalid(errors, path, level, names.dns1123_subdomain(level))
    for index, rule in enumerate(spec.get("rules") or ()):
        _rule(errors, f"spec.rules[{index}]", rule)
    return errors


def _rule(errors: list[FieldError], path: str, rule: Obj) -> None:
    if not rule.get("subjects"):
        errors.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(rule.get("subjects") or ()):
        _subject(errors, f"{path}.subjects[{index}]", subject)
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        errors.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))


def _subject(errors: list[FieldError], path: str, subject: Obj) -> None:
    fields = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
    kind = subject.get("kind") or ""
    if kind not in fields:
        errors.append(not_supported(f"{path}.kind", kind, ("Group", "ServiceAccount", "User")))
        return
    own = fields[kind]
    if subject.get(own) is None:
        errors.append(required(f"{path}.{own}", f"{own} is required when subject kind is '{kind}'"))
    else:
        checks.needed(errors, f"{path}.{own}.name", subject[own].get("name"))
    for field in fields.values():
        if field != own and subject.get(field) is not None:
            detail = f"{field} is forbidden when subject kind is not '{_kind_of(fields, field)}'"
            errors.append(forbidden_field(f"{path}.{field}", detail))


def _kind_of(fields: dict[str, str], field: str) -> str:
    return next(kind for kind, name in fields.items() if name == field)


def validate_priority_level(obj: Obj) -> list[FieldError]:
    errors = FieldErrors()
    spec = obj.get("spec") or {}
    kind, limited, exempt = spec.get("type") or "", spec.get("limited"), spec.get("exempt")
    if kind not in _TYPES:
        errors.append(not_supported("spec.type", kind, _TYPES))
        return errors
    if kind == "Exempt" and limited is not None:
        errors.append(forbidden_field("spec.limited", "must be nil if the type is not Limited"))
    elif kind == "Limited":
        if exempt is not None:
            errors.append(forbidden_field("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            errors.append(required("spec.limited", "must not be empty when type is Limited"))
        else:
            _limited(errors, "spec.limited", limited)
    return errors


def _limited(errors: list[FieldError], path: str, limited: Obj) -> None:
    if (limited.get("nominalConcurrencyShares") or 0) < 0:
        shares = limited["nominalConcurrencyShares"]
        errors.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    response = limited.get("limitResponse") or {}
    kind, queuing, place = response.get("type") or "", response.get("queuing"), f"{path}.limitResponse"
    if kind not in _RESPONSES:
        errors.append(not_supported(f"{place}.type", kind, _RESPONSES))
    elif kind == "Reject" and queuing is not None:
        errors.append(forbidden_field(f"{place}.queuing", "must be nil if limited.limitResponse.type is not Limited"))
    elif kind == "Queue" and queuing is None:
        errors.append(required(f"{place}.queuing", "must not be empty if limited.limitResponse.type is Limited"))
    elif queuing is not None:
        _queuing(errors, f"{place}.queuing", queuing)
    lent = limited.get("lendablePercent")
    if lent is not None and not 0 <= lent <= 100:
        errors.append(invalid(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive"))


def _queuing(errors: list[FieldError], path: str, queuing: Obj) -> None:
    for key, _ in (_QUEUING[2], _QUEUING[0], _QUEUING[1]):
        if (queuing.get(key) or 0) <= 0:
            errors.append(invalid(f"{path}.{key}", queuing.get(key) or 0, "must be positive"))
    if (queuing.get("handSize") or 0) > (queuing.get("queues") or 0):
        detail = f"should not be greater than queues ({queuing.get('queues')})"
        errors.append(invalid(f"{path}.handSize", queuing["handSize"], detail))


def _spec(obj: Obj) -> object:
    return obj.get("spec")


FLOW_SCHEMA = Strategy(default=default_flow_schema, validate=validate_flow_schema, generation=_spec)
PRIORITY_LEVEL = Strategy(default=default_priority_level, validate=validate_priority_level, generation=_spec)

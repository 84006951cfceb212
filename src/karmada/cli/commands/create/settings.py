"""`create namespace`, `poddisruptionbudget`, `priorityclass`, `quota` and `serviceaccount`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from karmada.cli.commands.create.generator import Recipe, generator
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "!": "DoesNotExist", "!=": "NotIn"}


@generator("v1/namespaces", namespaced=False)
def namespace(name: str) -> Recipe:
    """Create a namespace.

    \b
    Example:
      karmadactl create namespace shop
    """
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}, "spec": {}, "status": {}}


@generator("v1/serviceaccounts")
def serviceaccount(name: str) -> Recipe:
    """Create a service account.

    \b
    Example:
      karmadactl create serviceaccount robot -n shop
    """
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}}


@generator("policy/v1/poddisruptionbudgets")
@click.option("--min-available", default="", help="How many pods must stay available: a number or a percentage.")
@click.option("--max-unavailable", default="", help="How many pods may be unavailable: a number or a percentage.")
@click.option("--selector", default="", help="The labels of the pods.")
def poddisruptionbudget(name: str, min_available: str, max_unavailable: str, selector: str) -> Recipe:
    """Create a pod disruption budget.

    \b
    Examples:
      karmadactl create poddisruptionbudget web --selector=app=web --min-available=1
      karmadactl create poddisruptionbudget web --selector=app=web --max-unavailable=50%
    """
    if not selector:
        raise connect.failure("a selector must be specified")
    if not min_available and not max_unavailable:
        raise connect.failure("one of min-available or max-unavailable must be specified")
    if min_available and max_unavailable:
        raise connect.failure("min-available and max-unavailable cannot be both specified")
    spec: Obj = {"minAvailable": _amount(min_available)} if min_available else {}
    spec["selector"] = _selector(selector)
    if max_unavailable:
        spec["maxUnavailable"] = _amount(max_unavailable)
    counts = dict.fromkeys(("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"), 0)
    return {
        "kind": "PodDisruptionBudget",
        "apiVersion": "policy/v1",
        "metadata": {"name": name},
        "spec": spec,
        "status": counts,
    }


def _amount(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdigit() else text


def _selector(text: str) -> Obj:
    """Return a selector as people write it, in the form of objects."""
    from karmada.kube.objects.selectors import parse_labels

    try:
        parsed = parse_labels(text)
    except ValueError as error:
        raise connect.failure(str(error)) from error
    labels: dict[str, str] = {}
    expressions: list[Obj] = []
    for requirement in parsed.requirements:
        if requirement.op in ("=", "=="):
            labels[requirement.key] = requirement.values[0]
            continue
        expression: Obj = {"key": requirement.key, "operator": _OPERATORS[requirement.op]}
        if requirement.values:
            expression["values"] = list(requirement.values)
        expressions.append(expression)
    selector: Obj = {"matchLabels": labels} if labels else {}
    return {**selector, "matchExpressions": expressions} if expressions else selector


@generator("scheduling.k8s.io/v1/priorityclasses", namespaced=False)
@click.option("--value", type=int, default=0, show_default=True, help="The priority.")
@click.option("--global-default", is_flag=True, help="Use this class for pods without a priority class.")
@click.option("--description", default="", help="When the class is to be used.")
@click.option(
    "--preemption-policy",
    default="PreemptLowerPriority",
    show_default=True,
    help="PreemptLowerPriority or Never.",
)
def priorityclass(name: str, value: int, global_default: bool, description: str, preemption_policy: str) -> Recipe:
    """Create a priority class.

    \b
    Examples:
      karmadactl create priorityclass high --value=1000 --description='for what must run'
      karmadactl create priorityclass patient --value=10 --preemption-policy=Never
    """
    obj: Obj = {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": value,
    }
    if global_default:
        obj["globalDefault"] = True
    if description:
        obj["description"] = description
    return {**obj, "preemptionPolicy": preemption_policy}


@generator("v1/resourcequotas")
@click.option("--hard", default="", help="Limits as RESOURCE=QUANTITY, comma-separated.")
@click.option("--scopes", default="", help="Scopes of the quota, comma-separated.")
def quota(name: str, hard: str, scopes: str) -> Recipe:
    """Create a quota for a namespace.

    \b
    Examples:
      karmadactl create quota small --hard=cpu=1,memory=1G,pods=2 -n shop
      karmadactl create quota lenient --hard=pods=100 --scopes=BestEffort
    """
    spec: Obj = {"hard": dict(_limit(word) for word in hard.split(","))} if hard else {}
    if scopes:
        spec["scopes"] = scopes.split(",")
    return {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": name}, "spec": spec, "status": {}}


def _limit(word: str) -> tuple[str, str]:
    from karmada.kube.objects.quantity import Quantity

    resource, equals, amount = word.partition("=")
    if not equals or "=" in amount:
        raise connect.failure(f"Invalid argument syntax {word}, expected <resource>=<value>")
    try:
        return resource, str(Quantity.parse(amount))
    except ValueError as error:
        raise connect.failure(str(error)) from error

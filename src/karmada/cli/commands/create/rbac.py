"""`create role`, `clusterrole`, `rolebinding` and `clusterrolebinding`.

The groups of the resources come from discovery. Each group gets a rule of its own, in the order of first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.commands.create.generator import Recipe, generator, split_commas
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.cli.targeting.session import Session
    from karmada.kube.client.discovery import Catalog
    from karmada.kube.objects.types import Obj

API = "rbac.authorization.k8s.io"
_VERBS = (
    "get", "delete", "list", "create", "update", "patch", "watch", "proxy", "deletecollection", "use", "bind",
    "escalate", "impersonate", "approve", "sign", "attest",
)  # fmt: skip
_URL_VERBS = ("get", "put", "post", "head", "options", "delete", "patch")
_VERB = click.option("--verb", multiple=True, help="An allowed verb; may be repeated or comma-separated.")
_RESOURCE = click.option(
    "--resource",
    multiple=True,
    help="RESOURCE, RESOURCE.GROUP or RESOURCE/SUBRESOURCE that the rule applies to; may be repeated.",
)
_RESOURCE_NAME = click.option("--resource-name", multiple=True, help="Only the resource of this name; may be repeated.")


@generator(f"{API}/v1/roles")
@_VERB
@_RESOURCE
@_RESOURCE_NAME
def role(name: str, verb: tuple[str, ...], resource: tuple[str, ...], resource_name: tuple[str, ...]) -> Recipe:
    """Create a role with one rule.

    \b
    Examples:
      karmadactl create role pod-reader --verb=get,list,watch --resource=pods
      karmadactl create role scaler --verb=patch --resource=deployments.apps/scale --resource-name=web
    """
    verbs, resources = _verbs(verb), _parse_resources(resource)
    _check_verbs(verbs)
    _check_resources(resources)

    async def made(session: Session) -> Obj:
        catalog = await session.client.mapper.catalog()
        return _object("Role", name, rules=_resource_rules(catalog, verbs, resources, list(resource_name)))

    return made


@generator(f"{API}/v1/clusterroles", namespaced=False)
@_VERB
@_RESOURCE
@_RESOURCE_NAME
@click.option("--non-resource-url", multiple=True, help="A path of the server, which may end with *; may be repeated.")
@click.option("--aggregation-rule", default="", help="Labels of the cluster roles to aggregate.")
def clusterrole(
    name: str,
    verb: tuple[str, ...],
    resource: tuple[str, ...],
    resource_name: tuple[str, ...],
    non_resource_url: tuple[str, ...],
    aggregation_rule: str,
) -> Recipe:
    """Create a cluster role with one rule.

    \b
    Examples:
      karmadactl create clusterrole node-reader --verb=get,list --resource=nodes
      karmadactl create clusterrole logs --verb=get --non-resource-url='/logs/*'
      karmadactl create clusterrole monitoring --aggregation-rule=rbac.example.com/aggregate-to-monitoring=true
    """
    verbs, resources, urls = _verbs(verb), _parse_resources(resource), split_commas(non_resource_url)
    if aggregation_rule:
        if verbs or resources or urls or resource_name:
            raise connect.failure(
                "aggregation rule must be specified without nonResourceURLs, verbs, resources or resourceNames"
            )
        labels = dict(_pair(word) for word in aggregation_rule.split(","))
        rule = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        return _object("ClusterRole", name, rules=None, aggregationRule=rule)
    _check_verbs(verbs)
    if urls:
        if resource_name:
            raise connect.failure("resourceNames cannot be specified with nonResourceURLs")
        _check_urls(verbs, urls)
    if resources or not urls:
        _check_resources(resources)

    async def made(session: Session) -> Obj:
        rules = []
        if resources:
            catalog = await session.client.mapper.catalog()
            rules += _resource_rules(catalog, verbs, resources, list(resource_name))
        if urls:
            rules.append({"verbs": verbs, "nonResourceURLs": urls})
        return _object("ClusterRole", name, rules=rules)

    return made


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise connect.failure(
            f'invalid argument "{word}" for "--aggregation-rule" flag: malformed pair, expect string=string'
        )
    return key, value


def _verbs(given: tuple[str, ...]) -> list[str]:
    """Return each once; `*` stands for all of them."""
    verbs = list(dict.fromkeys(split_commas(given)))
    return ["*"] if "*" in verbs else verbs


def _check_verbs(verbs: Sequence[str]) -> None:
    if not verbs:
        raise connect.failure("at least one verb must be specified")


def _check_resources(resources: Sequence[tuple[str, str]]) -> None:
    if not resources:
        raise connect.failure("at least one resource must be specified")


def _check_urls(verbs: Sequence[str], urls: Sequence[str]) -> None:
    for verb in verbs:
        if verb not in (*_URL_VERBS, "*"):
            raise connect.failure(f"invalid verb: '{verb}' for nonResourceURL")
    for url in urls:
        if url == "*":
            continue
        if not url.startswith("/"):
            raise connect.failure("nonResourceURL should start with /")
        if "*" in url[:-1]:
            raise connect.failure("nonResourceURL only supports wildcard matches when '*' is at the end")


def _parse_resources(given: tuple[str, ...]) -> list[tuple[str, str]]:
    """RESOURCE[.GROUP] and subresource; `*` among them stands for all."""
    found = []
    for word in split_commas(given):
        resource, _, subresource = word.partition("/")
        if not resource:
            raise connect.failure(f"resource must be specified and cannot be empty: {word}")
        found.append((resource, subresource))
    return [("*", "")] if ("*", "") in found else found


def _resource_rules(
    catalog: Catalog, verbs: list[str], resources: Sequence[tuple[str, str]], names: list[str]
) -> list[Obj]:
    by_group: dict[str, list[str]] = {}
    for word, subresource in resources:
        group, plural = _resolved(catalog, word)
        listed = by_group.setdefault(group, [])
        full = f"{plural}/{subresource}" if subresource else plural
        if full not in listed:
            listed.append(full)
    for verb in verbs:
        if verb not in (*_VERBS, "*"):
            click.echo(f"Warning: '{verb}' is not a standard resource verb", err=True)
    return [_rule(verbs, group, listed, names) for group, listed in by_group.items()]


def _resolved(catalog: Catalog, word: str) -> tuple[str, str]:
    """Group and plural of what a person calls a resource."""
    resource, dot, group = word.partition(".")
    if resource == "*":
        return group, resource
    mapping = catalog.named(word)
    if mapping is None:
        where = f' in group "{group}"' if dot else ""
        raise connect.failure(f'the server doesn\'t have a resource type "{resource}"{where}')
    return mapping.gvr.group, mapping.gvr.resource


def _rule(verbs: list[str], group: str, resources: list[str], names: list[str]) -> Obj:
    rule: Obj = {"verbs": verbs, "apiGroups": [group], "resources": resources}
    return {**rule, "resourceNames": names} if names else rule


def _object(kind: str, name: str, **more: Any) -> Obj:
    return {"kind": kind, "apiVersion": f"{API}/v1", "metadata": {"name": name}, **more}


# bindings

_USER = click.option("--user", multiple=True, help="A user to bind the role to; may be repeated.")
_GROUP = click.option("--group", multiple=True, help="A group to bind the role to; may be repeated.")
_ACCOUNT = click.option(
    "--serviceaccount", multiple=True, help="A service account to bind the role to, NAMESPACE:NAME; may be repeated."
)


@generator(f"{API}/v1/rolebindings")
@click.option("--clusterrole", default="", help="The cluster role to bind.")
@click.option("--role", "role_name", default="", help="The role to bind.")
@_USER
@_GROUP
@_ACCOUNT
def rolebinding(name: str, clusterrole: str, role_name: str, **subjects: tuple[str, ...]) -> Recipe:
    """Bind a role or a cluster role to subjects in a namespace.

    \b
    Examples:
      karmadactl create rolebinding editors --clusterrole=edit --user=ann --group=web-team
      karmadactl create rolebinding robots --role=pod-reader --serviceaccount=ci:runner -n shop
    """
    if bool(clusterrole) == bool(role_name):
        raise connect.failure("exactly one of clusterrole or role must be specified")
    reference = _reference("ClusterRole" if clusterrole else "Role", clusterrole or role_name)
    return _object("RoleBinding", name, **_subjects(**subjects), roleRef=reference)


@generator(f"{API}/v1/clusterrolebindings", namespaced=False, required=["clusterrole"])
@click.option("--clusterrole", default="", help="The cluster role to bind.")
@_USER
@_GROUP
@_ACCOUNT
def clusterrolebinding(name: str, clusterrole: str, **subjects: tuple[str, ...]) -> Recipe:
    """Bind a cluster role to subjects in all namespaces.

    \b
    Example:
      karmadactl create clusterrolebinding admins --clusterrole=cluster-admin --user=ann --group=operators
    """
    return _object("ClusterRoleBinding", name, **_subjects(**subjects), roleRef=_reference("ClusterRole", clusterrole))


def _reference(kind: str, name: str) -> Obj:
    return {"apiGroup": API, "kind": kind, "name": name}


def _subjects(user: tuple[str, ...], group: tuple[str, ...], serviceaccount: tuple[str, ...]) -> Obj:
    subjects: list[Obj] = [{"kind": "User", "apiGroup": API, "name": name} for name in user]
    subjects += [{"kind": "Group", "apiGroup": API, "name": name} for name in group]
    for account in serviceaccount:
        namespace, colon, name = account.partition(":")
        if not colon or not namespace or not name or ":" in name:
            raise connect.failure("serviceaccount must be <namespace>:<name>")
        subjects.append({"kind": "ServiceAccount", "name": name, "namespace": namespace})
    return {"subjects": subjects} if subjects else {}

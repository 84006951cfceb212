"""`create ingress` and `create service clusterip|nodeport|loadbalancer|externalname`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from karmada.cli.commands.create.generator import Recipe, generator, split_commas
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_RULE = re.compile(r"(?P<host>[\w*.-]*)(?P<path>/[^=]*)=(?P<service>[\w-]+):(?P<port>[\w-]+)(?:,(?P<tls>.*))?")
_ANNOTATION = re.compile(r"[^=]+=.*")


# ingress


@generator("networking.k8s.io/v1/ingresses")
@click.option("--rule", multiple=True, help="HOST/PATH=SERVICE:PORT[,tls[=SECRET]]; a path ending with * is a prefix.")
@click.option("--class", "class_", default="", help="The class of the ingress.")
@click.option("--default-backend", default="", help="SERVICE:PORT for requests that no rule matches.")
@click.option("--annotation", multiple=True, help="KEY=VALUE; may be repeated.")
def ingress(name: str, rule: tuple[str, ...], class_: str, default_backend: str, annotation: tuple[str, ...]) -> Recipe:
    """Create an ingress from rules.

    \b
    Examples:
      karmadactl create ingress shop --rule='shop.example.com/*=web:80,tls=shop-cert'
      karmadactl create ingress all --class=nginx --default-backend=web:http
    """
    if not rule and not default_backend:
        raise connect.failure(
            "not enough information provided: every ingress has to either specify a default-backend (which catches all "
            "traffic) or a list of rules (which catch specific paths)"
        )
    rules = [_parse_rule(text) for text in rule]
    metadata: Obj = {"name": name}
    if annotation:
        metadata["annotations"] = dict(_annotation(text) for text in annotation)
    spec: Obj = {"ingressClassName": class_} if class_ else {}
    if default_backend:
        service, colon, port = default_backend.partition(":")
        if not colon or not service or not port or ":" in port:
            raise connect.failure("default-backend should be in format servicename:serviceport")
        spec["defaultBackend"] = _backend(service, port)
    spec |= {key: value for key, value in (("tls", _tls(rules)), ("rules", _hosts(rules))) if value}
    return {
        "kind": "Ingress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": metadata,
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _annotation(text: str) -> tuple[str, str]:
    if not _ANNOTATION.fullmatch(text):
        raise connect.failure(f"annotation {text} is invalid and should be in format key=[value]")
    key, _, value = text.partition("=")
    return key, value


def _parse_rule(text: str) -> dict[str, Any]:
    found = _RULE.fullmatch(text)
    if found is None:
        raise connect.failure(
            f"rule {text} is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]"
        )
    return found.groupdict()


def _hosts(rules: list[dict[str, Any]]) -> list[Obj]:
    """Return the paths of each host together, hosts in the order in which they come."""
    by_host: dict[str, list[Obj]] = {}
    for rule in rules:
        path, kind = rule["path"], "Exact"
        if path.endswith("*"):
            path, kind = path[:-1], "Prefix"
        backend = _backend(rule["service"], rule["port"])
        by_host.setdefault(rule["host"], []).append({"path": path, "pathType": kind, "backend": backend})
    return [{**({"host": host} if host else {}), "http": {"paths": paths}} for host, paths in by_host.items()]


def _tls(rules: list[dict[str, Any]]) -> list[Obj]:
    """Hosts with the same secret together."""
    by_secret: dict[str, list[str]] = {}
    for rule in rules:
        if rule["tls"] is None:
            continue
        secret = rule["tls"].partition("=")[2]
        hosts = by_secret.setdefault(secret, [])
        if rule["host"] and rule["host"] not in hosts:
            hosts.append(rule["host"])
    return [
        {**({"hosts": hosts} if hosts else {}), **({"secretName": secret} if secret else {})}
        for secret, hosts in by_secret.items()
    ]


def _backend(service: str, port: str) -> Obj:
    place: Obj = {"number": int(port)} if port.isdigit() else {"name": port}
    return {"service": {"name": service, "port": place}}


# services

_TCP = click.option("--tcp", multiple=True, help="PORT or PORT:TARGET; may be repeated or comma-separated.")


@generator("v1/services", word="ClusterIP service")
@_TCP
@click.option("--clusterip", default="", help="The address of the service; None makes it headless.")
def clusterip(name: str, tcp: tuple[str, ...], clusterip: str) -> Recipe:
    """Create a service with a cluster IP.

    \b
    Examples:
      karmadactl create service clusterip web --tcp=80:8080
      karmadactl create service clusterip peers --clusterip=None
    """
    return _service(name, "ClusterIP", tcp, cluster_ip=clusterip, needs_port=clusterip != "None")


@generator("v1/services", word="NodePort service")
@_TCP
@click.option("--node-port", type=int, default=0, help="The port on every node.")
def nodeport(name: str, tcp: tuple[str, ...], node_port: int) -> Recipe:
    """Create a service with a port on every node.

    \b
    Example:
      karmadactl create service nodeport web --tcp=80:8080 --node-port=30080
    """
    return _service(name, "NodePort", tcp, node_port=node_port)


@generator("v1/services", word="LoadBalancer service")
@_TCP
def loadbalancer(name: str, tcp: tuple[str, ...]) -> Recipe:
    """Create a service behind a load balancer.

    \b
    Example:
      karmadactl create service loadbalancer web --tcp=80:8080
    """
    return _service(name, "LoadBalancer", tcp)


@generator("v1/services", word="ExternalName service", required=["external-name"])
@_TCP
@click.option("--external-name", default="", help="The external DNS name that the service maps to.")
def externalname(name: str, tcp: tuple[str, ...], external_name: str) -> Recipe:
    """Create a service that maps to a DNS name outside the cluster.

    \b
    Example:
      karmadactl create service externalname database --external-name=db.example.com
    """
    return _service(name, "ExternalName", tcp, external_name=external_name, needs_port=False)


def _service(
    name: str,
    type_: str,
    tcp: tuple[str, ...],
    *,
    cluster_ip: str = "",
    external_name: str = "",
    node_port: int = 0,
    needs_port: bool = True,
) -> Obj:
    ports = [_port(text, node_port) for text in split_commas(tcp)]
    if needs_port and not ports:
        raise connect.failure("at least one tcp port specifier must be provided")
    spec: Obj = {"ports": ports} if ports else {}
    spec["selector"] = {"app": name}
    if cluster_ip:
        spec["clusterIP"] = cluster_ip
    spec["type"] = type_
    if external_name:
        spec["externalName"] = external_name
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": spec,
        "status": {"loadBalancer": {}},
    }


def _port(text: str, node_port: int) -> Obj:
    words = text.split(":")
    if len(words) > 2:
        raise connect.failure(f"invalid port format: {text}")
    number = _number(words[0])
    target: int | str = number if len(words) == 1 else _target(words[1])
    port: Obj = {"name": text.replace(":", "-"), "protocol": "TCP", "port": number, "targetPort": target}
    return {**port, "nodePort": node_port} if node_port else port


def _number(text: str) -> int:
    if not text.isdigit():
        raise connect.failure(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if int(text) > 65535:
        raise connect.failure(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _target(text: str) -> int | str:
    """Return a number, or the name of a container's port."""
    if text.isdigit():
        if not 1 <= int(text) <= 65535:
            raise connect.failure("must be between 1 and 65535, inclusive")
        return int(text)
    from karmada.kube.objects.names import port_name

    wrong = port_name(text)
    if wrong:
        raise connect.failure(",".join(wrong))
    return text

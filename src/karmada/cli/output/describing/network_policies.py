"""NetworkPolicies: which traffic they let through, in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karmada.cli.output.describing.sheet import Sheet
from karmada.cli.output.describing.words import at, marks, meta, moment, names, selector_text

if TYPE_CHECKING:
    from karmada.cli.output.describing.around import Around
    from karmada.kube.objects.types import Obj

_EVERYONE = "<none> (Allowing the specific traffic to all pods in this namespace)"


async def network_policy(sheet: Sheet, obj: Obj, _around: Around) -> None:
    spec = obj.get("spec") or {}
    types = spec.get("policyTypes") or []
    names(sheet, obj)
    sheet.field("Created on", moment(meta(obj, "creationTimestamp"), "%Y-%m-%d %H:%M:%S %z %Z"))
    marks(sheet, obj)
    sheet.row(0, "Spec:")
    selector = spec.get("podSelector") or {}
    pods = selector_text(selector) if any(selector.values()) else _EVERYONE
    sheet.row(1, f"PodSelector:     {pods}")
    for way, peers, word in (("Ingress", "from", "From"), ("Egress", "to", "To")):
        if way not in types:
            sheet.row(1, f"Not affecting {way.lower()} traffic")
            continue
        sheet.row(1, f"Allowing {way.lower()} traffic:")
        _rules(sheet, spec.get(way.lower()) or [], way.lower(), peers, word)
    sheet.row(1, f"Policy Types: {', '.join(types)}")


def _rules(sheet: Sheet, rules: list[Obj], way: str, peers: str, word: str) -> None:
    if not rules:
        sheet.row(2, f"<none> (Selected pods are isolated for {way} connectivity)")
    for number, rule in enumerate(rules):
        if number:
            sheet.row(2, "----------")
        if not rule.get("ports"):
            sheet.row(2, "To Port: <any> (traffic allowed to all ports)")
        for port in rule.get("ports") or ():
            _port(sheet, port)
        if not rule.get(peers):
            side = "source" if way == "ingress" else "destination"
            sheet.row(2, f"{word}: <any> (traffic not restricted by {side})")
        for peer in rule.get(peers) or ():
            sheet.row(2, f"{word}:")
            _peer(sheet, peer)


def _port(sheet: Sheet, port: Obj) -> None:
    protocol, number = port.get("protocol") or "TCP", port.get("port", "<any>")
    if port.get("endPort") is not None:
        sheet.row(2, f"To Port Range: {number}-{port['endPort']}/{protocol}")
    else:
        sheet.row(2, f"To Port: {number}/{protocol}")


def _peer(sheet: Sheet, peer: Obj) -> None:
    if peer.get("namespaceSelector") is not None:
        sheet.row(3, f"NamespaceSelector: {selector_text(peer['namespaceSelector'])}")
    if peer.get("podSelector") is not None:
        sheet.row(3, f"PodSelector: {selector_text(peer['podSelector'])}")
    block = peer.get("ipBlock")
    if block:
        sheet.row(3, "IPBlock:")
        sheet.row(4, f"CIDR: {at(block, 'cidr')}")
        sheet.row(4, f"Except: {', '.join(block.get('except') or ())}")

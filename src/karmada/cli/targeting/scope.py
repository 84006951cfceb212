"""Where a command works: --operation-scope, --cluster and --clusters.

The control plane is the default; a cluster that is named without a scope means that cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from karmada.cli.targeting import connect

F = TypeVar("F", bound=Callable[..., Any])
KARMADA, MEMBERS, ALL = "karmada", "members", "all"


class Scope(click.ParamType[str]):
    name = "scope"

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        text = str(value)
        if text and text not in (KARMADA, MEMBERS, ALL):
            raise connect.failure(f"not support OperationScope: {text}")
        if text and text not in self.scopes:
            raise connect.failure(f"not support operation scope: {text}")
        return text


def scope_flag(*scopes: str) -> Callable[[F], F]:
    """--operation-scope; empty when it was not given, so that a command can see that."""
    names = ", ".join(scopes)
    return click.option(
        "-s", "--operation-scope", "scope", type=Scope(*scopes), default="", help=f"The scope: {names}."
    )


def one_cluster_flags(command: F) -> F:
    """--operation-scope karmada|members and --cluster, for commands that work on one server."""
    command = click.option("-C", "--cluster", default="", help="The member cluster.")(command)
    return scope_flag(KARMADA, MEMBERS)(command)


def chosen_cluster(scope: str, cluster: str) -> str:
    """Return the member that a command of one server is meant for; "" for the control plane."""
    if scope == MEMBERS and not cluster:
        raise connect.failure("must specify a member cluster")
    return cluster if scope != KARMADA else ""

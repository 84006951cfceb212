"""`create token`: a token of a service account, for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from karmada.cli.commands.create.generator import split_commas
from karmada.cli.output.printing import print_flags, printer
from karmada.cli.targeting import connect

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

_BOUND = {"Pod": "v1", "Secret": "v1", "Node": "v1"}


@click.command()
@click.argument("names", nargs=-1, metavar="SERVICE_ACCOUNT_NAME")
@click.option("--audience", multiple=True, help="An audience of the token; may be repeated.")
@click.option(
    "--duration", type=connect.Duration(), default=0.0, help="The requested lifetime; the server may choose another."
)
@click.option(
    "--bound-object-kind", default="", help="The kind of the object that the token is bound to: Pod, Secret or Node."
)
@click.option("--bound-object-name", default="", help="The name of that object.")
@click.option("--bound-object-uid", default="", help="The uid of that object [looked up by name].")
@print_flags
@connect.connection_flags
@connect.namespace_flag
def token(names: tuple[str, ...], **flags: Any) -> None:
    """Print a token of a service account.

    \b
    Examples:
      karmadactl create token robot -n shop
      karmadactl create token robot --duration=10m --audience=https://vault.example.com
    """
    if len(names) != 1:
        raise connect.usage(f"exactly one NAME is required, got {len(names)}")
    request = _request(flags)
    write = printer(
        flags["output"], flags["template"], flags["allow_missing_template_keys"], flags["show_managed_fields"]
    )
    answer = connect.run(_create(names[0], request, flags))
    if flags["output"] or flags["template"]:
        click.echo(write(answer), nl=False)
    else:
        click.echo(answer["status"]["token"])


def _request(flags: dict[str, Any]) -> Obj:
    kind, name, uid = flags["bound_object_kind"], flags["bound_object_name"], flags["bound_object_uid"]
    spec: Obj = {"audiences": split_commas(flags["audience"]) or None}
    if flags["duration"] < 0:
        raise connect.failure("--duration must be greater than or equal to 0")
    if flags["duration"]:
        spec["expirationSeconds"] = int(flags["duration"])
    if kind:
        if kind not in _BOUND:
            raise connect.failure(f"supported --bound-object-kind values are {', '.join(sorted(_BOUND))}")
        if not name:
            raise connect.failure("--bound-object-name is required if --bound-object-kind is provided")
        spec["boundObjectRef"] = {
            "kind": kind,
            "apiVersion": _BOUND[kind],
            "name": name,
            **({"uid": uid} if uid else {}),
        }
    elif name or uid:
        what = "name" if name else "uid"
        raise connect.failure(f"--bound-object-{what} can only be set if --bound-object-kind is provided")
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}, "spec": spec}


async def _create(name: str, request: Obj, flags: dict[str, Any]) -> Obj:
    from karmada.kube.objects.errors import ApiError
    from karmada.kube.objects.gvk import GVR

    async with flags["way"].open(flags["namespace"]) as session:
        try:
            accounts = GVR("", "v1", "serviceaccounts")
            made: Obj = await session.client.create_subresource(accounts, name, session.namespace, "token", request)
            return made
        except ApiError as error:
            raise connect.failure(f"failed to create token: {error.message}") from error

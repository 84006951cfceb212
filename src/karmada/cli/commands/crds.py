"""`karmadactl crds`: the CustomResourceDefinitions of the control plane, for a real kube-apiserver."""

from __future__ import annotations

from pathlib import Path

import click

from karmada.api.crds import CONVERT_URL, Webhook, crd_manifests
from karmada.kube.objects.types import Obj
from karmada.kube.schema.yamlio import dump_yaml


@click.command()
@click.option(
    "-o",
    "--output",
    default="-",
    show_default=True,
    help="The directory to write one file per CRD into, or - for standard output.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Include kinds that an aggregated API server may serve instead (Cluster, ResourceRegistry).",
)
@click.option(
    "--webhook-url", default=CONVERT_URL, show_default=True, help="The URL of the conversion webhook for bindings."
)
@click.option(
    "--webhook-ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The CA bundle (PEM) that verifies the webhook's certificate.",
)
def crds(output: str, everything: bool, webhook_url: str, webhook_ca: Path | None) -> None:
    """Write the CustomResourceDefinitions as YAML.

    The embedded API server serves these kinds without CRDs.

    \b
    Example:
      karmadactl crds | kubectl apply --server-side -f -
    """
    try:
        webhook = Webhook(webhook_url, webhook_ca.read_bytes() if webhook_ca is not None else b"")
        manifests = crd_manifests(everything=everything, webhook=webhook)
        if output == "-":
            click.echo(b"---\n".join(map(dump_yaml, manifests)), nl=False)
        else:
            _write(manifests, Path(output))
    except BrokenPipeError:  # nobody reads on
        raise
    except OSError as error:
        raise click.ClickException(str(error)) from error


def _write(manifests: list[Obj], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for manifest in manifests:
        spec = manifest["spec"]
        (directory / f"{spec['group']}_{spec['names']['plural']}.yaml").write_bytes(dump_yaml(manifest))
    click.echo(f"{len(manifests)} CustomResourceDefinitions in {directory}", err=True)

"""`karmadactl webhook-config`: the configurations that make a kube-apiserver call karmada-webhook."""

from __future__ import annotations

from pathlib import Path

import click

from karmada.admission.registration import URL, webhook_configurations
from karmada.kube.schema.yamlio import dump_yaml


@click.command(name="webhook-config")
@click.option("--url", default=URL, show_default=True, help="The URL of karmada-webhook, without a path.")
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The CA bundle (PEM) that verifies the webhook's certificate.",
)
def webhook_config(url: str, ca: Path | None) -> None:
    """Write the webhook configurations of karmada-webhook as YAML.

    The embedded API server applies the same rules without them.

    \b
    Example:
      karmadactl webhook-config --url https://localhost:8443 --ca ./certs/ca.crt | kubectl apply -f -
    """
    try:
        bundle = ca.read_bytes() if ca is not None else b""
    except OSError as error:
        raise click.ClickException(f"{ca}: {error.strerror}") from error
    click.echo(b"---\n".join(map(dump_yaml, webhook_configurations(url, bundle))), nl=False)

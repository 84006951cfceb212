"""`kube-apiserver`: the embedded API server under the name that installers start, beside a kube-controller-manager.

It is karmada-apiserver, and leaves to the kube-controller-manager what that has.
"""

from __future__ import annotations

from typing import Any

import click

from karmada.components.apiserver import api_server_flags, serve
from karmada.components.program import CONTEXT, Program


@click.command("kube-apiserver", cls=Program, context_settings=CONTEXT)
@api_server_flags(controllers=False)
def main(**given: Any) -> None:
    """Serve the Kubernetes API, and leave namespaces, garbage and tokens to a kube-controller-manager.

    Otherwise it is karmada-apiserver.
    """
    serve(given)


if __name__ == "__main__":
    main()

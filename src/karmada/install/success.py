"""What is printed when an installation has succeeded: that it has, and how to go on."""

from __future__ import annotations

from pathlib import Path

_RULE = "─" * 78
_TEXT = """\
{rule}
  Karmada is installed successfully: {server}
{rule}

  export KUBECONFIG={kubeconfig}

Register Kubernetes cluster to Karmada control plane.

Register cluster with 'Push' mode: the control plane connects to the cluster

  {program} --kubeconfig {kubeconfig} join MEMBER_NAME --cluster-kubeconfig=$HOME/.kube/config
  kubectl --kubeconfig {kubeconfig} get clusters

  The name is up to you; that of the kubeconfig's current context is
  MEMBER_NAME=$(kubectl config current-context --kubeconfig $HOME/.kube/config)

Register cluster with 'Pull' mode: an agent in the cluster connects to the control plane

  {program} token create --print-register-command --kubeconfig={kubeconfig}

  prints the command to run where the cluster is (add --kubeconfig of the cluster), like
  {program} register {endpoint} --token ID.SECRET --discovery-token-ca-cert-hash {pin}
  kubectl --kubeconfig {kubeconfig} get clusters

More: {program} register --help
Run '{program} init' again at any time: it repairs, renews certificates, and upgrades.
"""


def success(program: str, kubeconfig: Path, server: str, pin: str) -> str:
    return _TEXT.format(
        rule=_RULE,
        program=program,
        kubeconfig=kubeconfig,
        server=server,
        endpoint=server.removeprefix("https://"),
        pin=pin,
    )

"""The flags of karmada-metrics-adapter."""

from __future__ import annotations

from pathlib import Path

import yaml

from karmada.components.metrics_adapter import adapter_server, main
from karmada.kube.server.config import ServerConfig
from tests.support.cases import cases

KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}],
    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
    "current-context": "c",
}


@cases(
    ([], ("0.0.0.0", 8080)),
    (["--metrics-bind-address", "127.0.0.1:9090"], ("127.0.0.1", 9090)),
    (["--metrics-bind-address=0"], None),
)
async def test_metrics_are_served_where_the_flag_says(
    flags: list[str], where: tuple[str, int] | None, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
    arguments = ["--kubeconfig", str(kubeconfig), "--cert-dir", str(tmp_path), *flags]
    given = main.make_context("karmada-metrics-adapter", arguments).params
    extension = adapter_server(ServerConfig(data_dir=tmp_path, storage="memory://", port=0), given)
    endpoint = extension.endpoint
    assert where == (None if endpoint is None else (endpoint.host, endpoint.port))
    await extension.stop()

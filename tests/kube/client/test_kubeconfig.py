from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from karmada.kube.client.incluster import NotInCluster, in_cluster_config
from karmada.kube.client.kubeconfig import Kubeconfig, KubeconfigError, load_config
from karmada.kube.objects.types import Obj
from tests.support.cases import cases


def document(name: str, cluster: Obj | None = None, user: Obj | None = None, **context: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **context}}],
    }


def write(path: Path, content: Obj) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def test_everything_people_have_in_theirs_is_read(tmp_path: Path) -> None:
    pem = base64.b64encode(b"PEM").decode()
    config = load_config(
        write(
            tmp_path / "config",
            document(
                "one",
                {
                    "certificate-authority-data": pem,
                    "tls-server-name": "kubernetes",
                    "proxy-url": "http://proxy:3128",
                    "disable-compression": True,
                },
                {
                    "client-certificate-data": pem,
                    "client-key-data": pem,
                    "token": "t",
                    "as": "jane",
                    "as-uid": "1",
                    "as-groups": ["dev"],
                    "as-user-extra": {"k": ["v"]},
                },
                namespace="team",
            ),
        )
    )
    assert config.server == "https://one.example"
    assert config.ca.data == config.certificate.data == config.key.data == b"PEM"
    assert (config.tls_server_name, config.proxy_url) == ("kubernetes", "http://proxy:3128")
    assert config.disable_compression
    assert (config.token, config.namespace) == ("t", "team")
    assert config.impersonate.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Extra-k", "v"),
    ]
    assert "PEM" not in repr(config)


def test_paths_are_relative_to_their_file_and_inline_data_wins(tmp_path: Path) -> None:
    user = {
        "client-certificate": "pki/a.crt",
        "client-key": "/abs/a.key",
        "tokenFile": "token",
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "bin/login", "args": ["-q"]},
    }
    cluster = {"certificate-authority": "ca.crt", "certificate-authority-data": base64.b64encode(b"X").decode()}
    config = load_config(write(tmp_path / "sub" / "config", document("one", cluster, user)))
    assert config.certificate.path == str(tmp_path / "sub/pki/a.crt")
    assert config.key.path == "/abs/a.key"
    assert config.token_file == str(tmp_path / "sub/token")
    assert (config.ca.data, config.ca.path) == (b"X", "")
    assert config.exec is not None
    assert config.exec.command == str(tmp_path / "sub/bin/login")
    assert config.exec.args == ("-q",)


def test_several_files_merge_and_the_first_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = document("one"), document("two")
    two["clusters"].append({"name": "one", "cluster": {"server": "https://shadowed"}})
    paths = [write(tmp_path / "a", one), tmp_path / "missing", write(tmp_path / "b", two)]
    monkeypatch.setenv("KUBECONFIG", ":".join(map(str, paths)))
    merged = Kubeconfig.load()
    assert merged.current_context == "one"
    assert merged.resolve().server == "https://one.example"
    assert merged.resolve("two").server == "https://two.example"
    assert merged.resolve("two", cluster="one").server == "https://one.example"


@cases(
    ({"current-context": "nope"}, r'context "nope" does not exist \(known: one\)'),
    ({"contexts": [], "current-context": ""}, "no cluster chosen"),
    ({"clusters": []}, 'cluster "one" does not exist'),
    ({"users": []}, 'user "one" does not exist'),
    ({"users": [{"name": "one", "user": {"auth-provider": {"name": "gcp"}}}]}, '"gcp" is no longer supported'),
    ({"users": [{"name": "one", "user": {"exec": {"command": "x", "apiVersion": "v0"}}}]}, 'apiVersion "v0"'),
    ({"clusters": [{"name": "one", "cluster": {}}]}, "the cluster has no server"),
)
def test_what_is_wrong_is_said(change: Obj, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "config", {**document("one"), **change})
    with pytest.raises(KubeconfigError, match=message):
        load_config(path)


@cases(("a: [", "error converting YAML to JSON"), ("just text", "not a kubeconfig"))
def test_a_file_that_is_no_kubeconfig_is_named(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=f"{path}: {message}"):
        load_config(path)
    with pytest.raises(KubeconfigError, match="No such file"):
        load_config(tmp_path / "missing")


def test_a_server_without_a_scheme_is_plain_http(tmp_path: Path) -> None:
    assert Kubeconfig.parse(yaml.safe_dump(document("a", {"server": "127.0.0.1:8080"}))).resolve().server == (
        "http://127.0.0.1:8080"
    )


def test_a_pod_finds_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(NotInCluster):
        in_cluster_config(tmp_path)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("CA")
    (tmp_path / "namespace").write_text("karmada-system\n")
    config = in_cluster_config(tmp_path)
    assert config.server == "https://[fd00::1]:443"
    assert config.token_file == str(tmp_path / "token")
    assert config.ca.path == str(tmp_path / "ca.crt")
    assert config.namespace == "karmada-system"

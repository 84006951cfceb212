"""A kubeconfig file whose credentials change while they are used, and a server that comes back."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from karmada.kube.client.config import RestConfig
from karmada.kube.client.credentials import credentials_for
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import KubeconfigError
from karmada.kube.client.reloading_kubeconfig import ReloadingKubeconfig
from karmada.kube.client.request_sender import RequestSender
from karmada.kube.client.transport import Call, ConnectionFailed
from tests.kube.client.test_http1 import OK, listening, saying


def written(path: Path, certificate: bytes, server: str = "https://one:1") -> None:
    """As a Secret volume does it: another file under the same name."""
    data = base64.b64encode(certificate).decode()
    new = path.with_name("new")
    new.write_text(
        f"current-context: c\nclusters: [{{name: k, cluster: {{server: '{server}'}}}}]\n"
        f"contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        f"users: [{{name: u, user: {{client-certificate-data: {data}, client-key-data: {data}}}}}]\n"
    )
    os.replace(new, path)


async def test_a_certificate_that_is_replaced_in_the_file_is_the_one_of_the_next_request(tmp_path: Path) -> None:
    file = tmp_path / "config"
    written(file, b"first")
    credentials = credentials_for(ReloadingKubeconfig(str(file)).config())
    before = await credentials.get()
    assert (before.certificate, before.key) == (b"first", b"first")
    assert not credentials.rejected(before)
    written(file, b"second", server="https://two:2")
    assert credentials.rejected(before)
    assert (await credentials.get()).certificate == b"second"


async def test_a_file_that_is_gone_or_wrong_leaves_the_credentials_in_place(tmp_path: Path) -> None:
    file = tmp_path / "config"
    written(file, b"first")
    credentials = credentials_for(ReloadingKubeconfig(str(file)).config())
    file.unlink()
    assert (await credentials.get()).certificate == b"first"
    file.write_text("users: [")
    assert (await credentials.get()).certificate == b"first"
    written(file, b"second")
    assert (await credentials.get()).certificate == b"second"


async def test_credentials_can_be_adopted_before_the_file_has_them(tmp_path: Path) -> None:
    file, other = tmp_path / "config", tmp_path / "other"
    written(file, b"first")
    followed = ReloadingKubeconfig(str(file))
    credentials = credentials_for(followed.config())
    written(other, b"second")
    followed.adopt(other.read_bytes())
    assert (await credentials.get()).certificate == b"second"
    assert (await credentials.get()).certificate == b"second"
    written(file, b"third")
    assert (await credentials.get()).certificate == b"third"


def test_a_file_that_is_unusable_from_the_beginning_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError):
        ReloadingKubeconfig(str(tmp_path / "none"))


async def test_the_first_response_after_a_failure_is_reported_once() -> None:
    returned: list[str] = []
    answer = OK + b"Content-Length: 2\r\n\r\n{}"
    async with listening(saying(answer, answer)) as here:
        transport = HttpTransport(RestConfig(server=here.url))
        transport.returned.append(lambda: returned.append("back"))
        await transport.call(Call("GET", "/x"))
        assert returned == []
        sender, transport._sender = transport._sender, RequestSender(RestConfig(server="http://127.0.0.1:1"))
        with pytest.raises(ConnectionFailed):
            await transport.call(Call("GET", "/x"))
        transport._sender = sender
        await transport.call(Call("GET", "/x"))
        assert returned == ["back"]
        await transport.close()

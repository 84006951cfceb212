"""karmada-webhook as a process: certificates, TLS, metrics, health and flags."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest
from click.testing import CliRunner

from karmada.admission.context import Settings
from karmada.admission.review import answer
from karmada.admission.table import MUTATING
from karmada.components.flags import Endpoints
from karmada.components.webhook import WebhookServer, main, serve, serving_context
from karmada.kube.objects.types import Obj
from karmada.kube.server.auth import files
from tests.support.cases import cases
from tests.support.ports import free_port


def trusting(folder: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(folder / "ca.crt"))


@asynccontextmanager
async def serving(folder: Path, minimum: str = "1.3") -> AsyncIterator[WebhookServer]:
    tls = serving_context(folder, "tls.crt", "tls.key", minimum)
    server = WebhookServer(Settings(), tls, host="127.0.0.1")
    await server.start()
    yield server
    await server.stop()


def review_request() -> bytes:
    obj: Obj = {"metadata": {"name": "x"}, "spec": {}}
    request = {"uid": "1", "operation": "CREATE", "object": obj}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


@cases("tls.crt", "tls.key")
async def test_half_a_pair_is_made_anew(left: str, tmp_path: Path) -> None:
    serving_context(tmp_path, "tls.crt", "tls.key", "1.3")
    for name in {"tls.crt", "tls.key"} - {left}:
        (tmp_path / name).unlink()
    before = (tmp_path / left).read_bytes()
    async with serving(tmp_path) as server, aiohttp.ClientSession() as session:
        url = f"https://localhost:{server.port}/mutate-work"
        async with session.post(url, data=review_request(), ssl=trusting(tmp_path)) as response:
            assert response.status == 200
    assert (tmp_path / left).read_bytes() != before


def test_what_is_interrupted_leaves_no_pair_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serving_context(tmp_path, "tls.crt", "tls.key", "1.3")
    (tmp_path / "tls.key").unlink()
    write = files.write_private

    def dying(path: Path, content: bytes) -> None:
        write(path, content)
        if path.name == "tls.key":
            raise KeyboardInterrupt

    monkeypatch.setattr(files, "write_private", dying)
    with pytest.raises(KeyboardInterrupt):
        serving_context(tmp_path, "tls.crt", "tls.key", "1.3")
    monkeypatch.undo()
    assert serving_context(tmp_path, "tls.crt", "tls.key", "1.3")


@cases(0o777, 0o770, 0o707)
def test_a_directory_that_others_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    directory = tmp_path / "certs"
    serving_context(directory, "tls.crt", "tls.key", "1.3")
    directory.chmod(mode)
    with pytest.raises(PermissionError, match="certs can be written to by others and cannot be trusted"):
        serving_context(directory, "tls.crt", "tls.key", "1.3")
    result = CliRunner().invoke(main, ["--cert-dir", str(directory)])
    assert result.exit_code == 1
    assert "cannot be trusted" in result.output


def test_a_directory_below_one_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PermissionError, match="open can be written to by others"):
        serving_context(tmp_path / "open" / "certs", "tls.crt", "tls.key", "1.3")
    (tmp_path / "open").chmod(0o1777)
    assert serving_context(tmp_path / "open" / "certs", "tls.crt", "tls.key", "1.3")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@cases("", "tls.crt", "tls.key")
def test_what_another_user_has_put_there_is_refused(theirs: str, tmp_path: Path) -> None:
    directory = tmp_path / "certs"
    serving_context(directory, "tls.crt", "tls.key", "1.3")
    directory.chmod(0o1777)
    os.chown(directory / theirs, 12345, 12345)
    with pytest.raises(PermissionError, match=f"{theirs or 'certs'} belongs to another user"):
        serving_context(directory, "tls.crt", "tls.key", "1.3")


async def test_a_certificate_is_made_once_and_its_authority_is_left_beside_it(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "certs"
    async with serving(directory):
        first = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert set(first) == {"ca.crt", "tls.crt", "tls.key", ".lock"}
    assert (directory / "tls.key").stat().st_mode & 0o777 == 0o600
    async with serving(directory) as server, aiohttp.ClientSession() as session:
        url = f"https://localhost:{server.port}/mutate-work"
        async with session.post(url, data=review_request(), ssl=trusting(directory)) as response:
            assert (await response.json())["response"]["allowed"]
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == first


async def test_older_tls_is_refused(folder: Path) -> None:
    async with serving(folder) as server, aiohttp.ClientSession() as session:
        tls = trusting(folder)
        tls.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.post(f"https://127.0.0.1:{server.port}/mutate-work", data=review_request(), ssl=tls)
    async with serving(folder, "1.2") as server, aiohttp.ClientSession() as session:
        answered = await session.post(f"https://127.0.0.1:{server.port}/mutate-work", data=review_request(), ssl=tls)
        assert answered.status == 200


async def test_an_answer_is_given_even_when_a_rule_breaks() -> None:
    def broken() -> str:
        raise RuntimeError("no more ids")

    [hook] = [hook for hook in MUTATING if hook.path == "/mutate-work"]
    response = (await answer(hook, review_request(), Settings(new_id=broken)))["response"]
    assert response == {
        "uid": "1",
        "allowed": False,
        "status": {"code": 500, "message": "RuntimeError: no more ids"},
    }


async def test_metrics_and_health_have_addresses_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, metrics, health = free_port(), free_port(), free_port()
    stopping = asyncio.Event()
    tls = serving_context(folder, "tls.crt", "tls.key", "1.3")
    running = asyncio.create_task(
        serve(Settings(), tls, ("127.0.0.1", port), Endpoints(("127.0.0.1", metrics), ("127.0.0.1", health)), stopping)
    )
    async with aiohttp.ClientSession() as session:
        while "Reviews at" not in capsys.readouterr().out:
            assert not running.done()
            await asyncio.sleep(0)
        url = f"https://127.0.0.1:{port}/mutate-work"
        async with session.post(url, data=review_request(), ssl=trusting(folder)) as response:
            assert response.status == 200
        for path in ("readyz", "readyz/"):
            async with session.get(f"https://127.0.0.1:{port}/{path}", ssl=trusting(folder)) as response:
                assert (response.status, await response.text()) == (200, "ok"), "where its probe looks"
        for page in ("healthz", "readyz", "readyz/webhook"):
            async with session.get(f"http://127.0.0.1:{health}/{page}") as response:
                assert (response.status, await response.text()) == (200, "ok")
        async with session.get(f"http://127.0.0.1:{metrics}/metrics") as response:
            page = await response.text()
    assert 'controller_runtime_webhook_requests_total{code="200",webhook="/mutate-work"} 1.0' in page
    assert 'controller_runtime_webhook_latency_seconds_count{webhook="/mutate-work"} 1.0' in page
    stopping.set()
    await running


@cases(
    (["--feature-gates", "Nonsense=true"], "unrecognized feature gate: Nonsense"),
    (["--tls-min-version", "1.4"], "'1.4' is not one of"),
    (["--metrics-bind-address", "8080"], '"8080" is not an address like :8080'),
    (["--kubeconfig", "/nowhere/config"], "/nowhere/config"),
)
def test_a_wrong_flag_gets_a_plain_answer(
    arguments: list[str], text: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: 'https://a'}}]\n"
        "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    result = CliRunner().invoke(main, ["--cert-dir", str(folder), *arguments])
    assert result.exit_code != 0
    assert text in result.output


def test_the_flags_are_those_of_karmada() -> None:
    defaults = {option.opts[0]: option.default for option in main.params}
    expected = {
        "--bind-address": "0.0.0.0",
        "--secure-port": 8443,
        "--cert-dir": Path("/tmp/k8s-webhook-server/serving-certs"),
        "--tls-cert-file-name": "tls.crt",
        "--tls-private-key-file-name": "tls.key",
        "--tls-min-version": "1.3",
        "--metrics-bind-address": ":8080",
        "--health-probe-bind-address": ":8000",
        "--allow-no-execute-taint-policy": False,
    }
    assert {name: defaults[name] for name in expected} == expected
    assert {"--kube-api-qps", "--kube-api-burst", "--feature-gates"} <= set(defaults)

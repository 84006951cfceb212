"""The Secrets of a release of the Helm chart."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from karmada.install.release import Release, delete_secrets, release_objects, secret_names, write_secrets
from karmada.kube.client.client import Client
from karmada.kube.client.kubeconfig import Kubeconfig
from karmada.kube.objects.gvk import GVK
from karmada.kube.objects.gvrs import SECRETS
from karmada.kube.objects.types import Obj
from tests.support.running import api_server

NOW = 1_900_000_000.0
YEAR = 365 * 86400.0
RELEASE = Release(
    name="blue",
    helm_name="blue",
    namespace="system",
    domain="cluster.local",
    hosts=("karmada.example.com", "192.0.2.7"),
    seconds=5 * YEAR,
    etcd_members=0,
)
CERT, WEBHOOK, CONFIG = secret_names("blue")


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with api_server(tmp_path, controllers=False) as server:
        client = server.client(user_agent="tests")
        await client.create(GVK("", "v1", "Namespace"), {"metadata": {"name": "system"}})
        yield client


async def held(client: Client, name: str) -> dict[str, bytes]:
    secret: Obj = await client.get(SECRETS, name, "system")
    return {file: base64.b64decode(text) for file, text in secret["data"].items()}


async def issued(client: Client, release: Release = RELEASE, now: float = NOW) -> tuple[dict[str, str], list[str]]:
    lines: list[str] = []
    outcomes = await write_secrets(client, release, now, lines.append)
    return dict(outcomes), lines


async def test_a_first_install_issues_certificates_and_a_kubeconfig(client: Client) -> None:
    outcomes, lines = await issued(client)
    assert outcomes == {CERT: "created", WEBHOOK: "created", CONFIG: "created"}
    assert lines[0] == "Issued certificate authority ca"
    files = await held(client, CERT)
    assert files["server-ca.crt"] == files["ca.crt"]
    assert "server-ca.key" not in files
    assert {"karmada.crt", "apiserver.key", "front-proxy-ca.crt", "front-proxy-client.key"} <= files.keys()
    serving = x509.load_pem_x509_certificate(files["apiserver.crt"])
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"karmada.example.com", "*.system.svc.cluster.local", "*.system.svc"} <= set(
        names.get_values_for_type(x509.DNSName)
    )
    assert "192.0.2.7" in map(str, names.get_values_for_type(x509.IPAddress))
    assert await held(client, WEBHOOK) == {"tls.crt": files["karmada.crt"], "tls.key": files["karmada.key"]}
    config = Kubeconfig.parse((await held(client, CONFIG))["kubeconfig"].decode()).resolve()
    assert config.server == "https://blue-apiserver.system.svc.cluster.local:5443"


async def test_helm_may_adopt_them_when_the_values_have_certificates_of_their_own(client: Client) -> None:
    await issued(client)
    metadata = (await client.get(SECRETS, CERT, "system"))["metadata"]
    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert metadata["annotations"]["meta.helm.sh/release-name"] == "blue"


async def test_an_upgrade_keeps_what_is_good(client: Client) -> None:
    await issued(client)
    before = await held(client, CERT)
    outcomes, lines = await issued(client, now=NOW + YEAR)
    assert (set(outcomes.values()), lines) == ({"unchanged"}, [])
    assert await held(client, CERT) == before


async def test_an_upgrade_renews_what_nears_its_end_and_keeps_authorities_and_keys(client: Client) -> None:
    await issued(client)
    before = await held(client, CERT)
    outcomes, lines = await issued(client, now=NOW + 5 * YEAR - 86400)
    assert outcomes == {CERT: "updated", WEBHOOK: "updated", CONFIG: "updated"}
    assert not [line for line in lines if "authority" in line]
    after = await held(client, CERT)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"karmada.crt", "apiserver.crt", "front-proxy-client.crt"}


async def test_a_new_host_is_in_the_certificate_after_an_upgrade(client: Client) -> None:
    await issued(client)
    _, lines = await issued(client, replace(RELEASE, hosts=(*RELEASE.hosts, "new.example.com")))
    assert "Issued certificate apiserver: it lacks new.example.com" in lines


async def test_members_of_etcd_are_in_its_certificate(client: Client) -> None:
    await issued(client, replace(RELEASE, etcd_members=3))
    serving = x509.load_pem_x509_certificate((await held(client, CERT))["etcd-server.crt"])
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "etcd-2.etcd.system.svc.cluster.local" in names.get_values_for_type(x509.DNSName)


async def test_nothing_is_left_after_an_uninstall_and_again_is_no_error(client: Client) -> None:
    await issued(client)
    assert await delete_secrets(client, "system", secret_names("blue")) == [CERT, WEBHOOK, CONFIG]
    assert await delete_secrets(client, "system", secret_names("blue")) == []
    assert (await client.list_all(SECRETS, "system")).items == []


def test_add_ons_of_a_release_are_found_by_its_services() -> None:
    found = release_objects(replace(RELEASE, etcd_members=1), b"ca", ["karmada-search"])
    named = {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in found}
    api = named["APIService/v1alpha1.search.karmada.io"]["spec"]["service"]
    assert (api["name"], api["namespace"]) == ("blue-search", "system")
    assert named["Service/blue-search"]["spec"]["externalName"] == "blue-search.system.svc.cluster.local"
    hooks = named["ValidatingWebhookConfiguration/validating-config"]["webhooks"]
    assert all(hook["clientConfig"]["url"].startswith("https://blue-webhook.system.svc:443/") for hook in hooks)

"""Installing into a cluster: once, again, after an interruption, and where it cannot work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from karmada.install.applying import apply
from karmada.install.certificates import CA
from karmada.install.control_plane import control_plane_objects
from karmada.install.options import InstallError, options_from
from karmada.install.phases import Installation
from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import Kubeconfig, load_config
from karmada.kube.objects.errors import NotFound
from karmada.kube.objects.gvrs import DEPLOYMENTS, NAMESPACES, STORAGE_CLASSES
from karmada.kube.objects.types import Obj
from karmada.kube.sim.behaviours import Outcome, Rule
from tests.install.installing import KINDS, NAMESPACE, Host, Killed, host_cluster
from tests.support.objects import kube_object

SEPARATE: dict[str, Any] = {"all-in-one": False, "etcd-storage-mode": "PVC"}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with host_cluster(tmp_path) as found:
        yield found


def versions(objects: dict[str, Obj]) -> dict[str, str]:
    """Without the workloads, whose status changes."""
    return {
        name: obj["metadata"]["resourceVersion"]
        for name, obj in objects.items()
        if not name.startswith(("deployments", "statefulsets", "persistentvolumeclaims"))
    }


async def test_the_all_in_one_is_one_deployment_and_a_second_run_changes_nothing(host: Host) -> None:
    first = await host.install()
    assert first.options.all_in_one
    objects = await host.objects()
    assert [name for name in objects if name.startswith(("deployments", "statefulsets"))] == [
        "deployments/karmada-apiserver"
    ]
    kubeconfig = first.kubeconfig.read_bytes()
    assert Kubeconfig.parse(kubeconfig.decode()).resolve("").server == first.server
    assert first.kubeconfig.stat().st_mode & 0o777 == 0o600
    await host.install()
    assert versions(await host.objects()) == versions(objects)
    assert first.kubeconfig.read_bytes() == kubeconfig


async def test_a_run_that_was_killed_after_any_write_is_finished_by_the_next(host: Host) -> None:
    """Each run dies one write later than the one before it."""
    survived, authorities = 0, set()
    for limit in range(1, 60):
        written: list[str] = []

        async def wrote(what: str, written: list[str] = written, limit: int = limit) -> None:
            written.append(what)
            if len(written) == limit:
                raise Killed

        try:
            await host.install({}, wrote=wrote)
        except Killed:
            authorities.add((host.folder / "pki" / "ca.crt").read_bytes())
            continue
        survived = limit
        break
    assert survived > 15, "it was never finished, or hardly interrupted"
    assert len(authorities) == 1
    finished = await host.specs()
    fresh = await _new_cluster_specs(host)
    assert set(finished) == set(fresh)


async def test_separate_components_survive_being_killed_now_and_then(host: Host, monkeypatch: Any) -> None:
    """Also between the objects of the control plane."""

    async def available(*_arguments: object) -> None:
        return None

    monkeypatch.setattr("karmada.install.phases.until_available", available)
    written: list[str] = []

    async def wrote(what: str) -> None:
        written.append(what)
        if len(written) == limit[0]:
            raise Killed

    limit = [0]
    killed = 0
    for limit[0] in range(5, 150, 13):
        written.clear()
        try:
            await host.install(SEPARATE, wrote=wrote)
        except Killed:
            killed += 1
    assert killed >= 5
    assert len(written) < limit[0], "the last run was not killed"
    before = await host.specs()
    assert {name for name in before if name.startswith(("deployments", "statefulsets"))} == {
        "statefulsets/etcd",
        *(
            f"deployments/{name}"
            for name in (
                "karmada-apiserver",
                "karmada-aggregated-apiserver",
                "kube-controller-manager",
                "karmada-scheduler",
                "karmada-controller-manager",
                "karmada-webhook",
            )
        ),
    }
    again = await host.install()
    assert not again.options.all_in_one, "its flags are those of the earlier runs"
    assert await host.specs() == before


async def _new_cluster_specs(host: Host) -> dict[str, Any]:
    async with host_cluster(host.folder / "other") as other:
        await other.install()
        return await other.specs()


async def test_what_somebody_deleted_or_changed_is_repaired(host: Host) -> None:
    await host.install()
    before = await host.specs()
    await host.client.delete(KINDS["secrets"], "karmada-cert", NAMESPACE)
    await host.client.delete(KINDS["services"], "karmada-apiserver", NAMESPACE)
    patch = {"spec": {"replicas": 0}}
    await host.client.patch(DEPLOYMENTS, "karmada-apiserver", NAMESPACE, patch, type="merge")
    await host.install()
    after = await host.specs()
    for specs in (before, after):
        for field in ("clusterIP", "clusterIPs"):
            specs["services/karmada-apiserver"]["spec"].pop(field)
    assert after == before


async def test_a_newer_version_changes_the_image_and_keeps_the_rest(host: Host) -> None:
    await host.install({"port": 31234})
    newer = {"karmada-apiserver-image": "me/karmada:v9"}
    await host.install(newer)
    deployment = await host.client.get(DEPLOYMENTS, "karmada-apiserver", NAMESPACE)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "me/karmada:v9"
    service = await host.client.get(KINDS["services"], "karmada-apiserver", NAMESPACE)
    assert service["spec"]["ports"][0]["nodePort"] == 31234


async def test_another_machine_gets_the_certificates_of_the_installation(host: Host, tmp_path: Path) -> None:
    first = await host.install()
    second = await host.install({}, folder=tmp_path / "elsewhere")
    assert second.kubeconfig != first.kubeconfig
    assert second.kubeconfig.read_bytes() == first.kubeconfig.read_bytes()
    with pytest.raises(InstallError, match="is not the certificate authority of the installation in the cluster"):
        await _with_foreign_authority(host, tmp_path / "foreign")


async def _with_foreign_authority(host: Host, folder: Path) -> None:
    async with host_cluster(folder) as other:
        await other.install()
        await host.install({}, folder=other.folder)


async def test_an_installation_of_another_layout_is_not_installed_over(host: Host) -> None:
    await host.install(SEPARATE, "host")
    with pytest.raises(InstallError) as error:
        await host.install({"all-in-one": True, "etcd-storage-mode": "hostPath"})
    assert "has separate components on etcd; these flags would install one Deployment on SQLite" in str(error.value)
    assert "karmadactl backup" in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"store-volume": "emptyDir"}, "its kind of volume is PVC, these flags say emptyDir"),
        ({"store-volume": "hostPath"}, "its kind of volume is PVC, these flags say hostPath"),
    ],
)
async def test_a_state_is_not_left_behind(host: Host, given: dict[str, Any], message: str) -> None:
    await host.install({}, "host")
    with pytest.raises(InstallError, match=message):
        await host.install(given)


async def test_etcd_is_not_resized_or_replaced(host: Host) -> None:
    await host.install(SEPARATE, "host")
    with pytest.raises(InstallError, match="its number of etcd members is 1, these flags say 3"):
        await host.install({"etcd-replicas": 3})
    with pytest.raises(InstallError, match="its etcd is not set, these flags say external"):
        await host.install({"external-etcd-servers": "https://e:2379"})


async def test_a_namespace_that_is_being_deleted_is_waited_for_by_the_user(host: Host) -> None:
    await host.install({}, "host")
    finalizers = {"metadata": {"finalizers": ["example.com/wait"]}}
    await host.client.patch(KINDS["secrets"], "karmada-cert", NAMESPACE, finalizers, type="merge")
    await host.client.delete(NAMESPACES, NAMESPACE)
    with pytest.raises(InstallError, match="namespace karmada-system is being deleted: run init again when it is gone"):
        await host.install({}, wrote=_never)


async def test_a_folder_that_cannot_be_used_is_named(host: Host, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstallError, match=r"file/pki.*: name a folder that you may use with --karmada-data"):
        await host.install({}, folder=tmp_path / "file", wrote=_never)


async def test_a_control_plane_of_another_tool_is_not_installed_over(host: Host) -> None:
    await host.install(SEPARATE, "host", "karmada-apiserver")
    await host.client.delete(KINDS["configmaps"], "karmada-init-options", NAMESPACE)
    with pytest.raises(InstallError, match="has a control plane that another tool installed"):
        await host.install()


async def test_a_release_of_helm_is_left_to_helm(host: Host) -> None:
    await host.install({}, "host", "karmada-apiserver")
    await host.client.delete(KINDS["configmaps"], "karmada-init-options", NAMESPACE)
    metadata = {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "blue"},
    }
    await host.client.patch(DEPLOYMENTS, "karmada-apiserver", NAMESPACE, {"metadata": metadata}, type="merge")
    with pytest.raises(InstallError, match="has a control plane that Helm installed: 'helm upgrade blue' repairs"):
        await host.install(wrote=_never)


# where it cannot work


async def test_missing_rights_are_listed_and_nothing_is_created(host: Host) -> None:
    with pytest.raises(InstallError) as error:
        await host.install({"namespace": "there"}, client=host.as_user("jane"), wrote=_never)
    lines = str(error.value).splitlines()
    assert lines[0].endswith("may not do this in the host cluster; nothing was changed:")
    assert "  create namespaces in the whole cluster" in lines
    assert "  patch secrets in namespace there" in lines
    assert "  get pods/log in namespace there" in lines
    assert "  list storageclasses.storage.k8s.io in the whole cluster" in lines
    assert not host.folder.exists()
    with pytest.raises(NotFound):
        await host.client.get(NAMESPACES, "there")


async def _never(what: str) -> None:
    raise AssertionError(f"{what} was written")


async def test_a_node_port_that_is_taken_is_named_with_its_service(host: Host) -> None:
    ports = [{"port": 80, "nodePort": 32443}]
    other = kube_object("v1", "Service", "web", "default", spec={"type": "NodePort", "ports": ports})
    await host.client.create(KINDS["services"], other)
    with pytest.raises(InstallError, match="nodePort of karmada apiserver 32443 already exist: Service default/web"):
        await host.install({}, wrote=_never)
    assert (await host.install({"port": 32444})).server.endswith(":32444")


async def test_an_image_that_cannot_be_pulled_is_reported_with_its_pod_and_what_to_do(host: Host) -> None:
    host.sim.add_rule("pull", Rule(Outcome("image-pull-error"), image="nowhere"))
    given = {"karmada-apiserver-image": "nowhere.example/karmada:v1", "wait-component-ready-timeout": 1}
    with pytest.raises(InstallError) as error:
        await host.install(given)
    text = str(error.value)
    assert text.startswith("Deployment/karmada-apiserver is not ready after 1s: 0 of 1 pods ready; karmada-apiserver-")
    assert "ImagePull" in text
    assert "event: Warning Failed: " in text
    assert "nowhere.example/karmada:v1" in text
    assert "What to do: name a registry that has the image (--private-image-registry)" in text
    assert text.endswith("Then run the command again: it goes on from here.")
    await host.install({"karmada-apiserver-image": "docker.io/pykarmada/karmada:v0.1.0"})


async def test_a_crash_is_reported_with_the_last_lines_of_its_log(host: Host) -> None:
    host.sim.add_rule("crash", Rule(Outcome("crash-loop", seconds=0.0), namespace=NAMESPACE))
    client = Client(HttpTransport(load_config(host.sim.kubeconfig)))
    with pytest.raises(InstallError) as error:
        await host.install({"wait-component-ready-timeout": 2}, client=client)
    await client.close()
    text = str(error.value)
    assert "CrashLoopBackOff" in text or "Error" in text
    assert "\n  log: " in text
    assert "What to do: its last log lines say why it ends" in text


async def test_a_cluster_without_a_default_storage_class_is_refused_before_anything_is_created(host: Host) -> None:
    await host.client.delete(STORAGE_CLASSES, "standard")
    with pytest.raises(InstallError, match="the cluster has no default StorageClass: name one with"):
        await host.install({}, wrote=_never)
    with pytest.raises(InstallError, match='there is no StorageClass "fast"'):
        await host.install({"storage-classes-name": "fast"}, wrote=_never)


async def test_progress_is_a_line_for_each_change(host: Host) -> None:
    await host.install()
    lines = host.output.getvalue().splitlines()
    assert any(line.startswith("  preflight: the API server will be at https://") for line in lines)
    assert any("Issued certificate authority ca" in line for line in lines)
    assert any(line.startswith("  karmada-apiserver: created Deployment karmada-apiserver (") for line in lines)
    assert any(line.startswith("  karmada-apiserver: ready (") for line in lines)
    assert len(lines) == len(set(lines))


# the control plane's own objects


async def test_objects_of_the_control_plane_are_applied_once(host: Host) -> None:
    installation = Installation(host.client, options_from(SEPARATE), host.connect, None)  # type: ignore[arg-type]
    certificates = await installation.issued(lambda _line: None)
    objects = control_plane_objects(installation.options, "https://10.0.0.1:32443", certificates[CA].cert_pem)
    plane = host.plane.client()
    assert {(await apply(plane, obj)).outcome for obj in objects} <= {"created", "updated"}
    assert {(await apply(plane, obj)).outcome for obj in objects} == {"unchanged"}
    kinds = {obj["kind"] for obj in objects}
    assert {"CustomResourceDefinition", "MutatingWebhookConfiguration", "APIService", "ConfigMap"} <= kinds

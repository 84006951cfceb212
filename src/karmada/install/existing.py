"""What an earlier run installed, and that this one goes on with it instead of installing something else over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from karmada.install.flags import Given, restored, value
from karmada.install.names import API_SERVER, OPTIONS
from karmada.install.options import InstallError, Options, options_from
from karmada.kube.client.client import Client
from karmada.kube.objects.errors import Forbidden
from karmada.kube.objects.gvrs import CONFIG_MAPS, DEPLOYMENTS
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.writes import get_if_exists

FLAGS_KEY: Final = "flags.json"
_MOVE: Final = "To move, write a backup ('karmadactl backup'), 'karmadactl deinit', init, and 'karmadactl restore'."


async def with_earlier(client: Client, given: Given) -> Options:
    """Return the options of this run: its flags, and those of an earlier run where this one says nothing.

    InstallError when that would be another layout or another store than the state is in.
    """
    namespace = value(given, "namespace")
    try:
        saved = await get_if_exists(client, CONFIG_MAPS, OPTIONS, namespace)
    except Forbidden:
        return options_from(given)  # the check of rights lists this one with all others
    if saved is None:
        wanted = options_from(given)
        _check_unknown(await get_if_exists(client, DEPLOYMENTS, API_SERVER, namespace), wanted)
        return wanted
    earlier = _flags(saved)
    options = options_from({**earlier, **given})
    _check_same_place(options_from(earlier), options)
    return options


def _flags(saved: Obj) -> dict[str, Any]:
    try:
        return restored(orjson.loads((saved.get("data") or {}).get(FLAGS_KEY) or "{}"))
    except ValueError as error:
        metadata = saved["metadata"]
        raise InstallError(
            f"ConfigMap {metadata['namespace']}/{metadata['name']} has no flags that can be read ({error}): delete it "
            "and give the flags of the first installation"
        ) from error


def _check_same_place(before: Options, now: Options) -> None:
    if (before.all_in_one, before.store) != (now.all_in_one, now.store):
        raise InstallError(
            f"namespace {now.namespace} has {_words(before)}; these flags would install {_words(now)} ({now.why}), "
            f"without its data. Leave them out to repair or upgrade it. {_MOVE}"
        )
    for what, old, new in _places(before, now):
        if old != new:
            raise InstallError(
                f"the state of namespace {now.namespace} is elsewhere: its {what} is {old or 'not set'}, these flags "
                f"say {new or 'not set'}. Leave them out to repair or upgrade it. {_MOVE}"
            )


def _places(before: Options, now: Options) -> Iterator[tuple[str, object, object]]:
    """Yield the settings of where the state is, as far as a change would leave it behind."""
    yield "etcd", _servers(before), _servers(now)
    if before.store == "etcd" and before.external_etcd is None:
        yield "number of etcd members", before.etcd.replicas, now.etcd.replicas
    yield "kind of volume", before.volume.mode, now.volume.mode
    if before.volume.mode == "hostPath":
        yield "folder", before.volume.path, now.volume.path


def _servers(options: Options) -> str:
    external = options.external_etcd
    return "" if external is None else f"external{f' below {external.prefix}' if external.prefix else ''}"


def _words(options: Options) -> str:
    layout = "one Deployment" if options.all_in_one else "separate components"
    return f"{layout} on {'SQLite' if options.store == 'sqlite' else 'etcd'}"


def _check_unknown(deployment: Obj | None, wanted: Options) -> None:
    """Refuse a control plane of another tool with another layout, or of Helm."""
    if deployment is None:
        return
    metadata = deployment["metadata"]
    if (metadata.get("labels") or {}).get("app.kubernetes.io/managed-by") == "Helm":
        release = (metadata.get("annotations") or {}).get("meta.helm.sh/release-name", "")
        raise InstallError(
            f"namespace {wanted.namespace} has a control plane that Helm installed: 'helm upgrade {release}' repairs "
            "and upgrades it; or install another one into another --namespace"
        )
    containers = deployment["spec"]["template"]["spec"]["containers"]
    separate = any("kube-apiserver" in word for each in containers for word in each.get("command") or ())
    if separate and wanted.all_in_one:
        raise InstallError(
            f"namespace {wanted.namespace} has a control plane that another tool installed, with separate components: "
            "say --all-in-one=false and its other flags to take it over, or install into another --namespace"
        )

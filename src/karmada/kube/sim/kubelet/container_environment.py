"""A container's environment variables and the files of its volumes, as a kubelet would set them up.

ConfigMaps and Secrets are read when a command runs, so their files are up to date. The token of a ServiceAccount is a
real one, bound to the pod.
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterable
from typing import Any

from karmada.kube.client.client import Client
from karmada.kube.objects import meta
from karmada.kube.objects.errors import ApiError, NotFound
from karmada.kube.objects.gvk import GVR
from karmada.kube.objects.gvrs import ACCOUNTS, CONFIG_MAPS, SECRETS
from karmada.kube.objects.quantity import Quantity
from karmada.kube.objects.types import Obj
from karmada.kube.sim.kubelet.filesystem import FileSystem, Mount, NodeVolumes, Volume
from karmada.kube.sim.kubelet.machine import Machine

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_TOKEN_SECONDS = 3607

Files = dict[str, bytes]
"""Content by path inside a volume."""


async def describe(
    client: Client,
    pod: Obj,
    container: Obj,
    volumes: NodeVolumes,
    *,
    api_host: str = "10.96.0.1",
    tokens: bool = True,
) -> Machine:
    """Return the inside of a running container; replies and the clock are the caller's to add.

    Without `tokens` none is requested from the server, and their files are missing.
    """
    return await Description(client, pod, container, tokens=tokens).machine(volumes, api_host)


async def sub_path_problem(client: Client, pod: Obj, container: Obj) -> str:
    """Why a container cannot start for a subPathExpr that leads outside its volume, or to a variable it has not."""
    mounts = [mount for mount in container.get("volumeMounts") or () if mount.get("subPathExpr")]
    if not mounts:
        return ""
    env = await Description(client, pod, container).environment({})
    for mount in mounts:
        missing = [name for name in _REFERENCE.findall(mount["subPathExpr"]) if name and name not in env]
        if missing:
            return f'missing value for "{missing[0]}"'
        path = expanded(mount["subPathExpr"], env)
        if path.startswith("/"):
            return f"error SubPath `{path}` must not be an absolute path"
        if ".." in path.split("/"):
            return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


def expanded(text: str, env: dict[str, str]) -> str:
    """With the values of the variables that it refers to as $(NAME)."""
    return _REFERENCE.sub(lambda match: _referred(match, env), text)


def hostname(pod: Obj) -> str:
    spec = pod.get("spec") or {}
    return str(spec.get("nodeName") if spec.get("hostNetwork") else spec.get("hostname") or meta.name(pod))


class Description:
    """Reads what a container's environment and volumes refer to; each object once."""

    def __init__(self, client: Client, pod: Obj, container: Obj, *, tokens: bool = True) -> None:
        self._client = client
        self._tokens = tokens
        self._pod = pod
        self._container = container
        self._namespace = meta.namespace(pod)
        self._read: dict[tuple[GVR, str], Obj | None] = {}

    async def machine(self, volumes: NodeVolumes, api_host: str) -> Machine:
        pod, container = self._pod, self._container
        name = hostname(pod)
        address = str((pod.get("status") or {}).get("podIP") or "127.0.0.1")
        files: Files = {
            "/etc/hostname": f"{name}\n".encode(),
            "/etc/hosts": f"127.0.0.1\tlocalhost\n{address}\t{name}\n".encode(),
            "/etc/resolv.conf": f"search {self._namespace}.svc.cluster.local svc.cluster.local cluster.local\n"
            "nameserver 10.96.0.10\noptions ndots:5\n".encode(),
        }
        env = {
            "PATH": _PATH,
            "HOSTNAME": name,
            "HOME": "/root",
            "KUBERNETES_SERVICE_HOST": api_host,
            "KUBERNETES_SERVICE_PORT": "443",
            "KUBERNETES_SERVICE_PORT_HTTPS": "443",
        }
        env |= await self.environment(env)
        written = volumes.written_by(meta.uid(pod), container["name"])
        layer = Mount(written, writable=not (container.get("securityContext") or {}).get("readOnlyRootFilesystem"))
        mounts = {path: Mount(Volume({"": content}, writable=False)) for path, content in files.items()}
        mounts |= {"/": layer, "/tmp": layer._replace(part="tmp"), "/dev": layer._replace(part="dev")}
        mounts |= await self._mounts(volumes, env)
        user = (container.get("securityContext") or {}).get("runAsUser")
        if user is None:
            user = ((pod.get("spec") or {}).get("securityContext") or {}).get("runAsUser")
        return Machine(name, env, FileSystem(mounts), container.get("workingDir") or "/", int(user or 0))

    async def _get(self, gvr: GVR, name: str) -> Obj | None:
        key = (gvr, name)
        if key not in self._read:
            try:
                self._read[key] = await self._client.get(gvr, name, self._namespace)
            except NotFound:
                self._read[key] = None
        return self._read[key]

    # environment

    async def environment(self, base: dict[str, str]) -> dict[str, str]:
        env = dict(base)
        for source in self._container.get("envFrom") or ():
            prefix = source.get("prefix") or ""
            for kind, gvr in (("configMapRef", CONFIG_MAPS), ("secretRef", SECRETS)):
                if kind in source:
                    found = contents(await self._get(gvr, source[kind]["name"]))
                    env |= {prefix + key: value.decode(errors="replace") for key, value in found.items()}
        for entry in self._container.get("env") or ():
            value = await self._value(entry)
            if value is not None:
                env[entry["name"]] = expanded(value, env)
        return env

    async def _value(self, entry: Obj) -> str | None:
        source = entry.get("valueFrom")
        if source is None:
            return str(entry.get("value") or "")
        for kind, gvr in (("configMapKeyRef", CONFIG_MAPS), ("secretKeyRef", SECRETS)):
            if kind in source:
                found = contents(await self._get(gvr, source[kind]["name"])).get(source[kind]["key"])
                return found.decode(errors="replace") if found is not None else None
        return _downward(self._pod, self._container, source)

    # volumes

    async def _mounts(self, known: NodeVolumes, env: dict[str, str]) -> dict[str, Mount]:
        volumes = {volume["name"]: volume for volume in (self._pod.get("spec") or {}).get("volumes") or ()}
        made: dict[str, Mount] = {}
        found: dict[str, Mount] = {}
        for mount in self._container.get("volumeMounts") or ():
            name, at = mount["name"], posixpath.normpath(mount["mountPath"])
            if name not in made:
                made[name] = await self._mountable(volumes.get(name) or {}, known)
            sub_path = mount.get("subPath") or expanded(mount.get("subPathExpr") or "", env)
            inside = posixpath.normpath(posixpath.join(made[name].part, sub_path)).strip("/") if sub_path else ""
            found[at] = Mount(made[name].volume, inside or made[name].part, not mount.get("readOnly"))
        return found

    async def _mountable(self, volume: Obj, known: NodeVolumes) -> Mount:
        """Return an emptyDir of the pod, a path of its node, or a volume whose content comes from the API."""
        spec = self._pod.get("spec") or {}
        if "emptyDir" in volume:
            return Mount(known.empty_dir(meta.uid(self._pod), volume["name"]))
        if "hostPath" in volume:
            path = posixpath.normpath(volume["hostPath"].get("path") or "/").strip("/")
            return Mount(known.host(spec.get("nodeName") or ""), path)
        return Mount(Volume(await self.volume(volume), writable=False))

    async def volume(self, volume: Obj) -> Files:
        """Return the files of a volume whose content comes from the API."""
        if "configMap" in volume:
            source = volume["configMap"]
            return picked(contents(await self._get(CONFIG_MAPS, source["name"])), source.get("items"))
        if "secret" in volume:
            source = volume["secret"]
            return picked(contents(await self._get(SECRETS, source["secretName"])), source.get("items"))
        if "downwardAPI" in volume:
            return self._downward_files(volume["downwardAPI"].get("items") or ())
        found: Files = {}
        for source in (volume.get("projected") or {}).get("sources") or ():
            found |= await self._projected(source)
        return found

    async def _projected(self, source: Obj) -> Files:
        if "serviceAccountToken" in source:
            return await self._token(source["serviceAccountToken"])
        if "downwardAPI" in source:
            return self._downward_files(source["downwardAPI"].get("items") or ())
        for kind, gvr in (("configMap", CONFIG_MAPS), ("secret", SECRETS)):
            if kind in source:
                return picked(contents(await self._get(gvr, source[kind]["name"])), source[kind].get("items"))
        return {}

    def _downward_files(self, items: Iterable[Obj]) -> Files:
        return {item["path"]: (_downward(self._pod, self._container, item) or "").encode() for item in items}

    async def _token(self, source: Obj) -> Files:
        if not self._tokens:
            return {}
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta.name(self._pod), "uid": meta.uid(self._pod)}
        spec: Obj = {"expirationSeconds": source.get("expirationSeconds") or _TOKEN_SECONDS, "boundObjectRef": bound}
        if source.get("audience"):
            spec["audiences"] = [source["audience"]]
        account = (self._pod.get("spec") or {}).get("serviceAccountName") or "default"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            made = await self._client.create_subresource(ACCOUNTS, account, self._namespace, "token", body)
        except ApiError:
            return {}  # an account that is gone has no tokens
        return {source["path"]: made["status"]["token"].encode()}


def contents(obj: Obj | None) -> Files:
    """Return what a ConfigMap or Secret holds."""
    if obj is None:
        return {}
    if obj.get("kind") == "Secret":
        return {key: base64.b64decode(value or "") for key, value in (obj.get("data") or {}).items()}
    found = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
    return found | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def picked(found: Files, items: Iterable[Obj] | None) -> Files:
    """Return all keys under their own names, or the listed items under their paths."""
    if not items:
        return found
    return {item["path"]: found[item["key"]] for item in items if item["key"] in found}


def _referred(match: re.Match[str], env: dict[str, str]) -> str:
    """$(NAME) of what is known, $$ as one $; anything else stays."""
    if match[0] == "$$":
        return "$"
    return env.get(match[1], match[0])


def _downward(pod: Obj, container: Obj, source: Obj) -> str | None:
    if "fieldRef" in source:
        return field_of(pod, source["fieldRef"]["fieldPath"])
    if "resourceFieldRef" in source:
        return _resource(pod, container, source["resourceFieldRef"])
    return None


def field_of(pod: Obj, path: str) -> str:
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        return str((meta.metadata(pod).get(keyed[1]) or {}).get(keyed[2]) or "")
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = meta.metadata(pod).get(path.removeprefix("metadata.")) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(pairs.items()))
    if path in ("status.podIPs", "status.hostIPs"):
        listed = (pod.get("status") or {}).get(path.removeprefix("status.")) or ()
        return ",".join(entry["ip"] for entry in listed)
    value: Any = pod
    for part in path.split("."):
        value = (value or {}).get(part)
    return "" if value is None else str(value)


def _resource(pod: Obj, container: Obj, wanted: Obj) -> str | None:
    """Return a container's request or limit in units of the divisor, rounded up."""
    name = wanted.get("containerName") or container["name"]
    listed = (pod.get("spec") or {}).get("containers") or ()
    found = next((one for one in listed if one["name"] == name), container)
    part, _, resource = wanted["resource"].partition(".")
    amount = ((found.get("resources") or {}).get(part) or {}).get(resource)
    if amount is None:
        return "0"
    divisor = Quantity.parse(wanted.get("divisor") or "1").nano or Quantity.of(1).nano
    return str(-(-Quantity.parse(amount).nano // divisor))

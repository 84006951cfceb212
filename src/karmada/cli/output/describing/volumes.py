"""Volumes of pods and sources of PersistentVolumes: for each kind its title and its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from karmada.cli.output.describing.claims import claim_template
from karmada.cli.output.describing.sheet import NONE, UNSET, Sheet, shown
from karmada.cli.output.describing.words import at, labels

if TYPE_CHECKING:
    from karmada.kube.objects.types import Obj

Get = Callable[["Obj"], Any]


class Source(NamedTuple):
    """`fields` are pairs of a title and the path of its value, or a function that makes it."""

    type: str
    fields: tuple[tuple[str, str | Get], ...] = ()


def _flag(key: str) -> Get:
    return lambda source: bool(source.get(key))


def _number(key: str) -> Get:
    return lambda source: source.get(key) or 0


def _reference(reference: Obj | None, far: bool) -> str:
    """As Go prints it; the Secrets of PersistentVolumes may be in another namespace."""
    if reference is None:
        return "nil"
    name = f"Name:{reference.get('name', '')}"
    if far:
        return f"&SecretReference{{{name},Namespace:{reference.get('namespace', '')},}}"
    return f"&LocalObjectReference{{{name},}}"


def _list(key: str) -> Get:
    return lambda source: shown(source.get(key) or [])


def _size_limit(source: Obj) -> str:
    from karmada.kube.objects.quantity import Quantity

    limit = Quantity.parse(source.get("sizeLimit") or "0")
    return str(limit) if limit.nano > 0 else UNSET


READ_ONLY = ("ReadOnly", _flag("readOnly"))
FS_TYPE = ("FSType", "fsType")
SECRET_REF = ("SecretRef", "secretRef")
"""Shown as Go prints a reference, unlike other values."""

SOURCES: dict[str, Source] = {
    "hostPath": Source(
        "HostPath (bare host directory volume)",
        (("Path", "path"), ("HostPathType", lambda source: source.get("type", NONE))),
    ),
    "emptyDir": Source(
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        (("Medium", "medium"), ("SizeLimit", _size_limit)),
    ),
    "gcePersistentDisk": Source(
        "GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)",
        (("PDName", "pdName"), FS_TYPE, ("Partition", _number("partition")), READ_ONLY),
    ),
    "awsElasticBlockStore": Source(
        "AWSElasticBlockStore (a Persistent Disk resource in AWS)",
        (("VolumeID", "volumeID"), FS_TYPE, ("Partition", _number("partition")), READ_ONLY),
    ),
    "gitRepo": Source(
        "GitRepo (a volume that is pulled from git when the pod is created)",
        (("Repository", "repository"), ("Revision", "revision")),
    ),
    "secret": Source(
        "Secret (a volume populated by a Secret)", (("SecretName", "secretName"), ("Optional", _flag("optional")))
    ),
    "configMap": Source(
        "ConfigMap (a volume populated by a ConfigMap)", (("Name", "name"), ("Optional", _flag("optional")))
    ),
    "nfs": Source(
        "NFS (an NFS mount that lasts the lifetime of a pod)", (("Server", "server"), ("Path", "path"), READ_ONLY)
    ),
    "iscsi": Source(
        "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod)",
        (
            ("TargetPortal", "targetPortal"),
            ("IQN", "iqn"),
            ("Lun", _number("lun")),
            ("ISCSIInterface", "iscsiInterface"),
            FS_TYPE,
            READ_ONLY,
            ("Portals", _list("portals")),
            ("DiscoveryCHAPAuth", _flag("chapAuthDiscovery")),
            ("SessionCHAPAuth", _flag("chapAuthSession")),
            SECRET_REF,
            ("InitiatorName", lambda source: source.get("initiatorName") or NONE),
        ),
    ),
    "glusterfs": Source(
        "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)",
        (("EndpointsName", "endpoints"), ("Path", "path"), READ_ONLY),
    ),
    "persistentVolumeClaim": Source(
        "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        (("ClaimName", "claimName"), READ_ONLY),
    ),
    "ephemeral": Source(
        "EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)"
    ),
    "rbd": Source(
        "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
        (
            ("CephMonitors", _list("monitors")),
            ("RBDImage", "image"),
            FS_TYPE,
            ("RBDPool", "pool"),
            ("RadosUser", "user"),
            ("Keyring", "keyring"),
            SECRET_REF,
            READ_ONLY,
        ),
    ),
    "quobyte": Source(
        "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
        (("Registry", "registry"), ("Volume", "volume"), READ_ONLY),
    ),
    "downwardAPI": Source("DownwardAPI (a volume populated by information about the pod)"),
    "azureDisk": Source(
        "AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)",
        (
            ("DiskName", "diskName"),
            ("DiskURI", "diskURI"),
            ("Kind", "kind"),
            FS_TYPE,
            ("CachingMode", "cachingMode"),
            READ_ONLY,
        ),
    ),
    "vsphereVolume": Source(
        "vSphereVolume (a Persistent Disk resource in vSphere)",
        (("VolumePath", "volumePath"), FS_TYPE, ("StoragePolicyName", "storagePolicyName")),
    ),
    "cinder": Source(
        "Cinder (a Persistent Disk resource in OpenStack)", (("VolumeID", "volumeID"), FS_TYPE, READ_ONLY, SECRET_REF)
    ),
    "photonPersistentDisk": Source(
        "PhotonPersistentDisk (a Persistent Disk resource in photon platform)", (("PdID", "pdID"), FS_TYPE)
    ),
    "portworxVolume": Source("PortworxVolume (a Portworx Volume resource)", (("VolumeID", "volumeID"),)),
    "scaleIO": Source(
        "ScaleIO (a persistent volume backed by a block device in ScaleIO)",
        (
            ("Gateway", "gateway"),
            ("System", "system"),
            ("Protection Domain", "protectionDomain"),
            ("Storage Pool", "storagePool"),
            ("Storage Mode", "storageMode"),
            ("VolumeName", "volumeName"),
            FS_TYPE,
            READ_ONLY,
        ),
    ),
    "cephfs": Source(
        "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
        (
            ("Monitors", _list("monitors")),
            ("Path", "path"),
            ("User", "user"),
            ("SecretFile", "secretFile"),
            SECRET_REF,
            READ_ONLY,
        ),
    ),
    "storageos": Source(
        "StorageOS (a StorageOS Persistent Disk resource)",
        (("VolumeName", "volumeName"), ("VolumeNamespace", "volumeNamespace"), FS_TYPE, READ_ONLY),
    ),
    "fc": Source(
        "FC (a Fibre Channel disk)",
        (
            ("TargetWWNs", lambda source: ", ".join(source.get("targetWWNs") or ())),
            ("LUN", lambda source: source["lun"] if source.get("lun") is not None else NONE),
            FS_TYPE,
            READ_ONLY,
        ),
    ),
    "azureFile": Source(
        "AzureFile (an Azure File Service mount on the host and bind mount to the pod)",
        (("SecretName", "secretName"), ("ShareName", "shareName"), READ_ONLY),
    ),
    "flexVolume": Source(
        "FlexVolume (a generic volume resource that is provisioned/attached using an exec based plugin)",
        (
            ("Driver", "driver"),
            FS_TYPE,
            SECRET_REF,
            READ_ONLY,
            ("Options", lambda source: source.get("options") or {}),
        ),
    ),
    "flocker": Source(
        "Flocker (a Flocker volume mounted by the Flocker agent)",
        (("DatasetName", "datasetName"), ("DatasetUUID", "datasetUUID")),
    ),
    "projected": Source("Projected (a volume that contains injected data from multiple sources)"),
    "csi": Source("CSI (a Container Storage Interface (CSI) volume source)"),
    "image": Source(
        "Image (a container image or OCI artifact)", (("Reference", "reference"), ("PullPolicy", "pullPolicy"))
    ),
    "local": Source("LocalVolume (a persistent volume backed by local storage on a node)", (("Path", "path"),)),
}
_SCALE_IO = SOURCES["scaleIO"].fields
PERSISTENT: dict[str, Source] = {
    "glusterfs": Source(
        SOURCES["glusterfs"].type,
        (
            ("EndpointsName", "endpoints"),
            ("EndpointsNamespace", lambda source: source.get("endpointsNamespace") or UNSET),
            ("Path", "path"),
            READ_ONLY,
        ),
    ),
    "scaleIO": Source(
        SOURCES["scaleIO"].type,
        (
            *_SCALE_IO[:6],
            ("SecretName", "secretRef.name"),
            ("SecretNamespace", "secretRef.namespace"),
            *_SCALE_IO[6:],
        ),
    ),
    "azureFile": Source(
        SOURCES["azureFile"].type,
        (
            ("SecretName", "secretName"),
            ("SecretNamespace", lambda source: source.get("secretNamespace") or UNSET),
            ("ShareName", "shareName"),
            READ_ONLY,
        ),
    ),
}
"""Sources that have more fields in a PersistentVolume than in a pod."""
_WITHOUT_COLON = frozenset({"ISCSIInterface"})


def volumes(sheet: Sheet, listed: Iterable[Obj], *, template: bool = False) -> None:
    """Describe the volumes of a pod, or of a pod template."""
    listed = list(listed)
    if not listed:
        sheet.field("Volumes", NONE, int(template))
        return
    sheet.row(int(template), "Volumes:")
    for volume in listed:
        sheet.row(1, f"{' ' if template else ''}{volume['name']}:")
        volume_source(sheet, volume)


def volume_source(sheet: Sheet, holder: Obj, *, persistent: bool = False) -> None:
    """`holder` has the source under the name of its kind, as a pod's volume and a PersistentVolume's spec do."""
    kind = next((kind for kind in SOURCES if holder.get(kind) is not None), "")
    if not kind:
        sheet.row(1, "<unknown>")
        return
    source: Obj = holder[kind]
    about = PERSISTENT.get(kind, SOURCES[kind]) if persistent else SOURCES[kind]
    sheet.field("Type", about.type, 2)
    for title, get in about.fields:
        if (title, get) == SECRET_REF:
            value = _reference(source.get("secretRef"), far=persistent)
        else:
            value = at(source, get) if isinstance(get, str) else get(source)
        sheet.row(2, title if title in _WITHOUT_COLON else f"{title}:", value)
    more = _MORE.get(kind)
    if more is not None:
        more(sheet, source)


def _downward(sheet: Sheet, source: Obj) -> None:
    sheet.row(2, "Items:")
    for item in source.get("items") or ():
        source = at(item, "fieldRef.fieldPath") or at(item, "resourceFieldRef.resource")
        if source:
            sheet.row(3, f"{source} -> {item['path']}")


def _projected(sheet: Sheet, source: Obj) -> None:
    for part in source.get("sources") or ():
        if part.get("secret"):
            _named(sheet, "SecretName", part["secret"])
        elif part.get("downwardAPI"):
            sheet.field("DownwardAPI", True, 2)
        elif part.get("configMap"):
            _named(sheet, "ConfigMapName", part["configMap"])
        elif part.get("serviceAccountToken"):
            sheet.field("TokenExpirationSeconds", at(part, "serviceAccountToken.expirationSeconds", 3600), 2)


def _named(sheet: Sheet, title: str, part: Obj) -> None:
    sheet.field(title, part.get("name") or "", 2)
    sheet.field("Optional", bool(part.get("optional")), 2)


def _csi(sheet: Sheet, source: Obj) -> None:
    sheet.field("Driver", source.get("driver") or "", 2)
    sheet.field("FSType", source.get("fsType") or "", 2)
    if "volumeHandle" in source:
        sheet.field("VolumeHandle", source["volumeHandle"], 2)
    sheet.field("ReadOnly", bool(source.get("readOnly")), 2)
    labels(sheet, "VolumeAttributes", source.get("volumeAttributes"), 2, inner="    ")


def _ephemeral(sheet: Sheet, source: Obj) -> None:
    if source.get("volumeClaimTemplate"):
        claim_template(sheet, source["volumeClaimTemplate"], 2)


_MORE: dict[str, Callable[[Sheet, Obj], None]] = {
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
}

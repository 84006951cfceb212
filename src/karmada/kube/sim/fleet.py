"""Many simulated clusters in one process and one folder.

Each cluster has a folder of its own under clusters/ with its description, certificates and state, so a fleet that is
started again is the fleet that was stopped, on the same ports. `members.config` holds all their kubeconfigs as contexts
named like the clusters. A cluster that fails does not affect the others.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import shutil
import socket
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

import msgspec

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.names import dns1123_label
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.files import write_private
from karmada.kube.sim.addressing import with_own_ranges
from karmada.kube.sim.attached import AttachedCluster
from karmada.kube.sim.cluster import SimCluster
from karmada.kube.sim.contexts import Contexts
from karmada.kube.sim.processes.images import ImageFileError, ImageRule, ImageTable, read_rules
from karmada.kube.sim.processes.loopback import Block, NoAddresses, block_of, claim, claim_any, in_block
from karmada.kube.sim.profile import NodePool, Profile

log = get_logger("fleet")
_STARTS_AT_ONCE = 4
_PORTS = range(20_000, 30_000)
_PORT_TRIES = 5
"""Another process may take the port that was just found to be free."""
Progress: TypeAlias = Callable[[int, int], None]
"""(started so far, all)"""
Member: TypeAlias = SimCluster | AttachedCluster


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a cluster that is stored beside its state."""

    profile: Profile
    port: int = 0
    attach: str = ""
    """The kubeconfig of a cluster that is not simulated, but gets simulated nodes."""
    context: str = ""
    run_processes: bool = False
    """Run pods of known images as processes of this machine."""
    process_images: str = ""
    """A file with further images for that."""


class ProcessDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """How clusters run processes: the images that are known, and what new clusters have unless they say otherwise."""

    known: tuple[ImageRule, ...] = ()
    run: bool = False
    images: str = ""


def _read(path: Path) -> Stored:
    return msgspec.json.decode(path.read_bytes(), type=Stored)


def _attaches(folder: Path) -> bool:
    """Return whether a description that may not be readable is of nodes in a real cluster."""
    try:
        described = msgspec.json.decode((folder / "cluster.json").read_bytes())
    except ValueError:
        return False
    return isinstance(described, dict) and bool(described.get("attach"))


def _free_port(name: str) -> int:
    """Return a free port, from outside the range of ephemeral ports."""
    first = zlib.crc32(name.encode()) % len(_PORTS)
    for step in range(len(_PORTS)):
        port = _PORTS[(first + step) % len(_PORTS)]
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                probe.listen(1)
            except OSError:
                continue
            return port
    return 0


class FleetError(Exception):
    """A request to the fleet that cannot be fulfilled; the message is for the user."""


async def _left(cluster: AttachedCluster) -> bool:
    try:
        await cluster.leave()
    except (TimeoutError, ApiError, ConnectionFailed) as error:
        log.warning("Simulated nodes stay behind", cluster=cluster.profile.name, error=str(error))
        return False
    return True


class Fleet:
    def __init__(
        self,
        folder: Path,
        *,
        in_memory: bool = False,
        namespace_deletion_delay: float = 0.0,
        processes: ProcessDefaults | None = None,
    ) -> None:
        """`namespace_deletion_delay` is that of every cluster's API server."""
        self.folder = folder
        self.processes = processes or ProcessDefaults()
        self.clusters: dict[str, Member] = {}
        self.failed: dict[str, str] = {}
        """Clusters that did not start, and why."""
        self._stored: dict[str, Stored] = {}
        self._in_memory = in_memory
        self._namespace_deletion_delay = namespace_deletion_delay
        self._busy: set[str] = set()
        self._starting: dict[str, Profile] = {}
        """Clusters that are being created."""
        self._contexts = Contexts(self.kubeconfig)
        self._blocks: dict[str, Block] = {}
        """The loopback addresses of clusters that run processes."""

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "members.config"

    # life cycle

    async def start(self, progress: Progress | None = None) -> None:
        """Start every cluster there is; one that cannot start is among `failed` and keeps its state."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = sorted((self.folder / "clusters").glob("*/cluster.json"))
        limit, done = asyncio.Semaphore(_STARTS_AT_ONCE), 0

        async def begin(path: Path) -> None:
            nonlocal done
            async with limit:
                try:
                    await self._begin(_read(path))
                except Exception as error:
                    self._release(path.parent.name)
                    self.failed[path.parent.name] = " ".join(str(error).split()) or type(error).__name__
                    log.exception("A cluster failed to start", error, cluster=path.parent.name)
            done += 1
            if progress is not None:
                progress(done, len(found))

        collecting = gc.isenabled()
        gc.disable()  # what is loaded now stays: looking through it again and again is wasted
        try:
            await asyncio.gather(*(begin(path) for path in found))
        finally:
            if collecting:
                gc.enable()
            gc.freeze()
        self._write_kubeconfig()

    async def stop(self) -> None:
        await asyncio.gather(*(cluster.stop() for cluster in self.clusters.values()))
        self.clusters.clear()
        for name in list(self._blocks):
            self._release(name)

    # clusters

    async def create(self, wanted: Stored, *, choose: Collection[str] = ()) -> Member:
        """Return a new cluster, ready for use; its address ranges `choose` are those that no other cluster has."""
        name = wanted.profile.name
        wrong = dns1123_label(name)
        if wrong:
            raise FleetError(f'cluster name "{name}": {wrong[0]}')
        if name in self.clusters or name in self._busy or name in self.failed:
            raise FleetError(f'cluster "{name}" already exists')
        wanted = self._with_processes(wanted)
        others = [*(stored.profile for stored in self._stored.values()), *self._starting.values()]
        if not wanted.run_processes:
            wanted = msgspec.structs.replace(wanted, profile=with_own_ranges(wanted.profile, choose, others))
        profile = wanted.profile
        self._busy.add(name)
        self._starting[name] = profile
        try:
            shutil.rmtree(self._folder(name), ignore_errors=True)  # what a creation left that was cut short
            cluster = await self._begin(wanted)
        except BaseException:
            self._release(name)
            shutil.rmtree(self._folder(name), ignore_errors=True)
            raise
        finally:
            self._busy.discard(name)
            del self._starting[name]
        self._write_kubeconfig()
        return cluster

    def _with_processes(self, wanted: Stored) -> Stored:
        """Return the settings for processes, and addresses of the loopback network if it runs any; FleetError."""
        run = (wanted.run_processes or self.processes.run) and not wanted.attach
        if wanted.run_processes and wanted.attach:
            raise FleetError("run_processes: nodes in a real cluster cannot run processes, whose addresses are local")
        images = wanted.process_images or self.processes.images
        wanted = msgspec.structs.replace(wanted, run_processes=run, process_images=images if run else "")
        if not run:
            return wanted
        self._table(wanted)
        try:
            block = self._blocks[wanted.profile.name] = claim_any(wanted.profile.name)
        except NoAddresses as error:
            raise FleetError(str(error)) from error
        return msgspec.structs.replace(wanted, profile=in_block(wanted.profile, block.number))

    def _claim(self, stored: Stored) -> None:
        """Claim the addresses of a cluster that runs processes, unless that is done already; NoAddresses."""
        name, number = stored.profile.name, block_of(stored.profile)
        if stored.run_processes and name not in self._blocks and number is not None:
            self._blocks[name] = claim(number)

    def _release(self, name: str) -> None:
        block = self._blocks.pop(name, None)
        if block is not None:
            block.release()

    def _table(self, stored: Stored) -> ImageTable | None:
        if not stored.run_processes:
            return None
        try:
            more = read_rules(Path(stored.process_images)) if stored.process_images else []
        except ImageFileError as error:
            raise FleetError(str(error)) from error
        return ImageTable([*self.processes.known, *more])

    async def delete(self, name: str) -> bool:
        """Stop a cluster and delete its state; False when its nodes had to be left in the real one."""
        if name in self._busy:
            raise FleetError(f'cluster "{name}" is being created or deleted')
        self._busy.add(name)
        try:
            return await self._remove(name)
        finally:
            self._busy.discard(name)

    async def _remove(self, name: str) -> bool:
        if name in self.failed:
            clean = not _attaches(self._folder(name))
            del self.failed[name]
        else:
            cluster = self.get(name)
            del self.clusters[name], self._stored[name]
            clean = not isinstance(cluster, AttachedCluster) or await _left(cluster)
            await cluster.stop()
            self._release(name)
        (self._folder(name) / "cluster.json").unlink(missing_ok=True)  # without it there is no cluster
        shutil.rmtree(self._folder(name), ignore_errors=True)
        self._write_kubeconfig()
        return clean

    def get(self, name: str) -> Member:
        cluster = self.clusters.get(name)
        if name in self.failed:
            raise FleetError(f'cluster "{name}" did not start: {self.failed[name]}')
        if cluster is None:
            known = ", ".join(sorted(self.clusters)) or "none"
            raise FleetError(f'no simulated cluster "{name}" (known: {known})')
        return cluster

    def stored(self, name: str) -> Stored:
        return self._stored[name]

    async def set_pools(self, name: str, pools: tuple[NodePool, ...]) -> None:
        cluster = self.get(name)
        stored = self._stored[name]
        cluster.registration.set_pools(pools)
        self._save(msgspec.structs.replace(stored, profile=msgspec.structs.replace(stored.profile, pools=pools)))

    async def _begin(self, stored: Stored, tries: int = _PORT_TRIES) -> Member:
        profile, folder = stored.profile, self._folder(stored.profile.name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stored.attach:
            attached = AttachedCluster(profile, Path(stored.attach), stored.context)
            for name, other in self.clusters.items():
                if other.url == attached.url:
                    raise FleetError(f'{attached.url} has simulated nodes already, those of "{name}"')
            try:
                await attached.start()
            except BaseException:
                await attached.stop()
                raise
            self._keep(attached, stored)
            return attached
        self._claim(stored)
        port = stored.port or _free_port(profile.name)
        cluster = SimCluster(
            profile,
            folder,
            port=port,
            in_memory=self._in_memory,
            namespace_deletion_delay=self._namespace_deletion_delay,
            process_images=self._table(stored),
        )
        try:
            await cluster.start()
        except OSError as error:
            await cluster.stop()
            if error.errno != errno.EADDRINUSE or not tries:
                raise
            log.warning("The port is taken, choosing another", cluster=profile.name, port=port)
            return await self._begin(msgspec.structs.replace(stored, port=0), tries - 1)
        except BaseException:
            await cluster.stop()
            raise
        self._keep(cluster, msgspec.structs.replace(stored, port=cluster.server.port))
        return cluster

    def _keep(self, cluster: Member, stored: Stored) -> None:
        self.clusters[stored.profile.name] = cluster
        self._save(stored)

    def _save(self, stored: Stored) -> None:
        self._stored[stored.profile.name] = stored
        write_private(self._folder(stored.profile.name) / "cluster.json", msgspec.json.encode(stored))

    def _folder(self, name: str) -> Path:
        return self.folder / "clusters" / name

    def _write_kubeconfig(self) -> None:
        """Write one file with every simulated cluster as a context of its name."""
        simulated = {name: one for name, one in self.clusters.items() if isinstance(one, SimCluster)}
        self._contexts.write({name: simulated[name].kubeconfig for name in sorted(simulated)})

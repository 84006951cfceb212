"""The admin API of a running fleet: HTTP on the loopback interface (its client is admin_client).

Its address and token are in admin.json in the fleet's folder, readable by its owner only. Bodies and responses are
JSON; an error is {"error": text} with a status of 400 and above.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from aiohttp import web

from karmada.kube.client.transport import ConnectionFailed
from karmada.kube.objects.errors import ApiError
from karmada.kube.runtime.http_server import serve
from karmada.kube.runtime.logging import get_logger
from karmada.kube.server.auth.files import write_private
from karmada.kube.sim.addressing import RANGES
from karmada.kube.sim.admin_client import ADMIN_FILE
from karmada.kube.sim.attached import AttachedCluster
from karmada.kube.sim.cluster import SimCluster, UnknownComponent
from karmada.kube.sim.faults import kinds
from karmada.kube.sim.faults.injector import UnknownFault
from karmada.kube.sim.fleet import Fleet, FleetError, Member, Stored
from karmada.kube.sim.kubelet.registration import UnknownNode
from karmada.kube.sim.metrics.load import Setting
from karmada.kube.sim.profile import NodePool

log = get_logger("admin")


class FaultRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    fault: kinds.Fault
    name: str = ""
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None


class LoadRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    setting: Setting


class AdminServer:
    def __init__(self, fleet: Fleet, stop: Callable[[], None]) -> None:
        self._fleet = fleet
        self._stop = stop
        self._token = secrets.token_urlsafe(32)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/clusters", self._list),
                web.post("/clusters", self._create),
                web.delete("/clusters/{name}", self._delete),
                web.put("/clusters/{name}/pools", self._pools),
                web.post("/clusters/{name}/faults", self._fail),
                web.delete("/clusters/{name}/faults", self._heal),
                web.post("/clusters/{name}/load", self._load),
                web.delete("/clusters/{name}/load", self._unload),
                web.post("/stop", self._end),
            ]
        )
        self._runner = await serve(app, "127.0.0.1", 0)
        host, port = self._runner.addresses[0][:2]
        self._fleet.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = {"url": f"http://{host}:{port}", "token": self._token, "pid": os.getpid()}
        write_private(self._fleet.folder / ADMIN_FILE, json.dumps(about).encode())

    async def stop(self) -> None:
        (self._fleet.folder / ADMIN_FILE).unlink(missing_ok=True)
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return _refusal(401, "the token in admin.json is needed")
        try:
            return await handler(request)
        except (FleetError, ValueError) as error:  # msgspec's ValidationError and JSON errors are ValueErrors
            return _refusal(400, str(error))
        except UnknownFault as error:
            return _refusal(404, f'fault "{error.args[0]}" not found')
        except (UnknownComponent, UnknownNode) as error:
            return _refusal(404, error.args[0])
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            return _refusal(502, f"the cluster's API: {error}")
        except web.HTTPException:
            raise
        except Exception as error:
            log.exception("A request failed", error, path=request.path)
            return _refusal(500, f"{type(error).__name__}: {error}")

    # handlers

    async def _list(self, _request: web.Request) -> web.Response:
        fleet = self._fleet
        failed = [{"name": name, "error": error} for name, error in fleet.failed.items()]
        shown = [*(self._show(name) for name in fleet.clusters), *failed]
        return web.json_response(sorted(shown, key=lambda cluster: str(cluster["name"])))

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.read()
        wanted = msgspec.json.decode(body, type=Stored)
        given = msgspec.json.decode(body)["profile"]
        await self._fleet.create(wanted, choose=RANGES - given.keys())
        return web.json_response(self._show(wanted.profile.name), status=201)

    async def _delete(self, request: web.Request) -> web.Response:
        clean = await self._fleet.delete(request.match_info["name"])
        return web.json_response({"clean": clean})

    async def _pools(self, request: web.Request) -> web.Response:
        pools = msgspec.json.decode(await request.read(), type=tuple[NodePool, ...])
        name = request.match_info["name"]
        await self._fleet.set_pools(name, pools)
        return web.json_response(self._show(name))

    async def _fail(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read(), type=FaultRequest)
        cluster = self._simulated(request)
        name = await cluster.faults.inject(wanted.fault, name=wanted.name, seconds=wanted.seconds)
        return web.json_response({"name": name})

    async def _heal(self, request: web.Request) -> web.Response:
        healed = await self._simulated(request).faults.heal(request.query.get("fault", ""))
        return web.json_response({"healed": healed})

    async def _load(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read(), type=LoadRequest)
        self._member(request).load.set(wanted.name, wanted.setting)
        return web.json_response({})

    async def _unload(self, request: web.Request) -> web.Response:
        load, wanted = self._member(request).load, request.query.get("setting", "")
        removed = [name for name in load.settings() if name == wanted or not wanted]
        for name in removed:
            load.remove(name)
        return web.json_response({"removed": removed})

    async def _end(self, _request: web.Request) -> web.Response:
        self._stop()
        return web.json_response({})

    def _member(self, request: web.Request) -> Member:
        return self._fleet.get(request.match_info["name"])

    def _simulated(self, request: web.Request) -> SimCluster:
        cluster = self._member(request)
        if isinstance(cluster, AttachedCluster):
            raise FleetError(f"{cluster.profile.name} is a real cluster: only a simulated one can be made to fail")
        return cluster

    def _show(self, name: str) -> dict[str, Any]:
        cluster, stored = self._fleet.get(name), self._fleet.stored(name)
        server, faults = f"attached ({stored.attach})", {}
        if isinstance(cluster, SimCluster):
            server = cluster.url
            faults = {each: kinds.write(active.fault) for each, active in cluster.faults.active.items()}
        return {
            "name": name,
            "version": f"v{stored.profile.version}.0",
            "nodes": sum(pool.count for pool in stored.profile.pools),
            "pods": cluster.pods,
            "server": server,
            "kubeconfig": str(cluster.kubeconfig),
            "labels": stored.profile.labels,
            "region": stored.profile.region,
            "zone": stored.profile.zone,
            "provider": stored.profile.provider,
            "faults": faults,
            "processes": _processes(cluster),
            "load": msgspec.to_builtins(cluster.load.settings()),
            "pools": msgspec.to_builtins(stored.profile.pools),
        }


def _processes(cluster: Member) -> list[dict[str, Any]] | None:
    """Return what runs as processes; None for a cluster that runs none."""
    if not isinstance(cluster, SimCluster) or cluster.processes is None:
        return None
    return cluster.processes.runtime.processes()


def _refusal(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)

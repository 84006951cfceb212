"""Connects the API server to simulated pods: logs, exec, attach, port-forward, and the proxies.

It behaves as an API server in front of kubelets: it picks the container, distinguishes pods that are not scheduled yet
from those whose node is lost, and delegates the rest to the node's kubelet, which here is one object for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from karmada.kube.kinds.resource import Resource
from karmada.kube.objects import meta
from karmada.kube.objects.errors import BadRequest, InternalError, MethodNotAllowed
from karmada.kube.objects.gvrs import NODES, PODS, SLICES
from karmada.kube.objects.podstate import is_terminal, node_name, phase
from karmada.kube.objects.types import Obj
from karmada.kube.runtime.keys import Key
from karmada.kube.server.addresses.service_routing import SERVICE_NAME
from karmada.kube.server.handlers.pod_logs import LogOptions, chosen_container
from karmada.kube.server.http.request import Request
from karmada.kube.server.http.results import RawResult, Result
from karmada.kube.sim.context import KUBELET, Context
from karmada.kube.sim.kubelet.access import TEXT, PodAccess
from karmada.kube.sim.kubelet.answers import Answers
from karmada.kube.sim.kubelet.channels import Wanted
from karmada.kube.sim.kubelet.pages import KubeletPages
from karmada.kube.sim.kubelet.proxying import (
    PodProxy,
    base_redirect,
    first_port,
    parse_name,
    refused,
    service_endpoint,
)
from karmada.kube.sim.kubelet.runtime import Runtime
from karmada.kube.sim.metrics.load import LoadModel

KUBELET_PORT = 10250


class PodConnector:
    """`answers` are the configured responses of containers; `load` is for the pages of nodes."""

    def __init__(self, context: Context, load: LoadModel | None = None, answers: Answers | None = None) -> None:
        self._context = context
        self.answers = answers or Answers()
        self.access = PodAccess(context, self.answers)
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._pages = KubeletPages(self.access, load or LoadModel(context))
        self._proxy = PodProxy(self.answers)
        self.failed: Callable[[str], bool] = lambda _node: False
        """True if a node has failed, which may be long before it is marked NotReady."""

    def use(self, runtime: Runtime) -> None:
        """Reach the containers that it runs through it."""
        self.access.runtime = self._proxy.runtime = runtime

    async def connect(self, request: Request, resource: Resource, obj: Obj) -> Result:
        if resource.gvk.kind == "Node":
            return await self._node(request, obj)
        if resource.gvk.kind == "Service":
            return await self._service(request, obj)
        if request.info.subresource == "proxy":
            return self._pod(request, obj)
        if request.method not in ("GET", "POST") or (request.info.subresource == "log" and request.method != "GET"):
            raise MethodNotAllowed()
        return self._inside(request, obj)

    # into a pod

    def _inside(self, request: Request, pod: Obj) -> Result:
        info, query, headers = request.info, request.query, request.headers
        if info.subresource == "log":
            return self._log(request, pod)
        if info.subresource == "portforward":
            self._reachable(pod, info.subresource)
            if phase(pod) != "Running":
                text = f"unable to forward port because pod is not running. Current status={phase(pod)}"
                return RawResult(text.encode(), TEXT, 500)
            return self.access.port_forward(pod, query, headers)
        if is_terminal(pod):
            verb = "exec into" if info.subresource == "exec" else "attach to"
            raise BadRequest(f"cannot {verb} a container in a completed pod; current phase is {phase(pod)}")
        container = chosen_container(pod, query.get("container"))
        self._reachable(pod, info.subresource)
        wanted = Wanted(*(query.flag(name) for name in ("stdin", "stdout", "stderr", "tty")))
        if not (wanted.stdin or wanted.stdout or wanted.stderr):
            raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
        if info.subresource == "attach":
            return self.access.attach(pod, container, wanted, headers)
        if not query.all("command"):
            raise BadRequest("you must specify at least one command for the container")
        return self.access.exec(pod, container, query.all("command"), wanted, headers)

    def _log(self, request: Request, pod: Obj) -> Result:
        options = LogOptions.parse(request.query, meta.name(pod), self._context.clock.now())
        container = chosen_container(pod, request.query.get("container"))
        if not node_name(pod):
            return RawResult(b"", "", 204)
        self._reachable(pod, "log", container["name"])
        return self.access.logs(pod, container["name"], options, stream=not request.in_process)

    def _reachable(self, pod: Obj, verb: str, container: str = "") -> None:
        """Raise unless the pod is on a node that is reachable."""
        name = node_name(pod)
        if not name:
            raise BadRequest(f"pod {meta.name(pod)} does not have a host assigned")
        node = self._nodes.get(Key("", name))
        if node is None or self._is_reachable(node):
            return
        address = _address(node)
        dialled = f"dial tcp {address}: connect: no route to host"
        if verb == "log":
            url = f"https://{address}/containerLogs/{meta.namespace(pod)}/{meta.name(pod)}/{container}"
            raise InternalError(f'Get "{url}": {dialled}')
        raise InternalError(f"error dialing backend: {dialled}")

    def _is_reachable(self, node: Obj) -> bool:
        if self.failed(meta.name(node)):
            return False
        ready = meta.get_condition((node.get("status") or {}).get("conditions"), "Ready")
        return ready is None or ready.get("status") != "Unknown"

    # proxies

    def _pod(self, request: Request, pod: Obj) -> Result:
        named = parse_name(request.info.name, "pod")
        if named.port and not named.port.isdigit():
            raise BadRequest(f'invalid pod request "{request.info.name}"')
        port = int(named.port) if named.port else first_port(pod)
        return base_redirect(request) or self._passed_on(request, pod, port, named.scheme)

    def _passed_on(self, request: Request, pod: Obj, port: int, scheme: str) -> Result:
        status = pod.get("status") or {}
        node = self._nodes.get(Key("", node_name(pod)))
        lost = node is not None and not self._is_reachable(node)
        if phase(pod) != "Running" or lost:
            raise refused(str(status.get("podIP") or "0.0.0.0"), port)
        return self._proxy.call(request, pod, port, scheme)

    async def _service(self, request: Request, service: Obj) -> Result:
        named = parse_name(request.info.name, "service")
        selector = f"{SERVICE_NAME}={meta.name(service)}"
        client = self._context.client(KUBELET)
        slices = (await client.list(SLICES, meta.namespace(service), label_selector=selector))["items"]
        endpoint = service_endpoint(service, named.port, slices, self._context.random)
        redirect = base_redirect(request)
        if redirect is not None:
            return redirect
        pod = self._pods.get(Key(meta.namespace(service), endpoint.pod)) if endpoint.pod else None
        if pod is None:
            raise refused(endpoint.address, endpoint.port)
        return self._passed_on(request, pod, endpoint.port, named.scheme)

    async def _node(self, request: Request, node: Obj) -> Result:
        named = parse_name(request.info.name, "node")
        port = int(named.port) if named.port.isdigit() else _kubelet_port(node)
        if not self._is_reachable(node) or port != _kubelet_port(node):
            raise refused(_address(node).rsplit(":", 1)[0], port)
        redirect = base_redirect(request)
        if redirect is not None:
            return redirect
        return await self._pages.handle(meta.name(node), request.info.rest, request.query, request.headers)


def _kubelet_port(node: Obj) -> int:
    endpoints = ((node.get("status") or {}).get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
    return int(endpoints.get("Port") or KUBELET_PORT)


def _address(node: Obj) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    internal = next((a["address"] for a in addresses if a["type"] == "InternalIP"), meta.name(node))
    return f"{internal}:{_kubelet_port(node)}"

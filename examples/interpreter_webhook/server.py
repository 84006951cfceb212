"""An interpreter webhook for the kind Workload (workload.example.io/v1alpha1).

python examples/interpreter_webhook/server.py --cert-dir ./certs
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from karmada.api.interpreter_context import DependentObjectReference
from karmada.api.work import Component
from karmada.interpreter.webhook_server import (
    InterpreterRequest,
    InterpreterResponse,
    errored,
    patched,
    serving,
    succeeded,
)
from karmada.kube.objects.copying import copy_json

PATH = "/interpreter-workload"
CERT_DIR = Path("/tmp/k8s-webhook-server/serving-certs")


def interpret(request: InterpreterRequest) -> InterpreterResponse:
    operation = OPERATIONS.get(request.operation)
    if operation is None:
        return errored(400, f"wrong request operation type: {request.operation}")
    return operation(request)


def replicas_of(workload: dict[str, Any]) -> int:
    found: int | None = workload["spec"].get("replicas")
    return 1 if found is None else found


def ready_replicas(holder: dict[str, Any]) -> int:
    found: int = (holder.get("status") or {}).get("readyReplicas") or 0
    return found


def interpret_replica(request: InterpreterRequest) -> InterpreterResponse:
    response = succeeded()
    response.replicas = replicas_of(request.object)
    return response


def interpret_component(request: InterpreterRequest) -> InterpreterResponse:
    response = succeeded()
    response.components = [Component(name="main", replicas=replicas_of(request.object))]
    return response


def revise_replica(request: InterpreterRequest) -> InterpreterResponse:
    revised = copy_json(request.object)
    revised["spec"]["replicas"] = request.replicas
    return patched(request.object, revised)


def retain(request: InterpreterRequest) -> InterpreterResponse:
    """Whether a workload is paused is decided in each cluster."""
    if request.observed_object is None:
        return errored(400, "there is no observedObject")
    kept = copy_json(request.object)
    if "paused" in request.observed_object["spec"]:
        kept["spec"]["paused"] = request.observed_object["spec"]["paused"]
    return patched(request.object, kept)


def aggregate_status(request: InterpreterRequest) -> InterpreterResponse:
    aggregated = copy_json(request.object)
    ready = sum(ready_replicas({"status": item.status}) for item in request.aggregated_status)
    aggregated["status"] = {"readyReplicas": ready}
    return patched(request.object, aggregated)


def interpret_status(request: InterpreterRequest) -> InterpreterResponse:
    response = succeeded()
    response.raw_status = {"readyReplicas": ready_replicas(request.object)}
    return response


def interpret_health(request: InterpreterRequest) -> InterpreterResponse:
    response = succeeded()
    response.healthy = ready_replicas(request.object) == replicas_of(request.object)
    return response


def interpret_dependency(request: InterpreterRequest) -> InterpreterResponse:
    """The ConfigMap that the first container takes its environment from."""
    containers = request.object["spec"].get("template", {}).get("spec", {}).get("containers") or [{}]
    sources = containers[0].get("envFrom") or [{}]
    name = (sources[0].get("configMapRef") or {}).get("name")
    response = succeeded()
    if name:
        response.dependencies = [
            DependentObjectReference(api_version="v1", kind="ConfigMap", namespace=request.namespace, name=name)
        ]
    return response


OPERATIONS: dict[str, Callable[[InterpreterRequest], InterpreterResponse]] = {
    "InterpretReplica": interpret_replica,
    "InterpretComponent": interpret_component,
    "ReviseReplica": revise_replica,
    "Retain": retain,
    "AggregateStatus": aggregate_status,
    "InterpretStatus": interpret_status,
    "InterpretHealth": interpret_health,
    "InterpretDependency": interpret_dependency,
}


@click.command()
@click.option("--bind-address", default="0.0.0.0", help="Address to listen on.")
@click.option("--secure-port", default=8445, help="Port to listen on; 0 takes a free one.")
@click.option("--cert-dir", type=click.Path(path_type=Path), default=CERT_DIR, help="Where tls.crt and tls.key are.")
def main(bind_address: str, secure_port: int, cert_dir: Path) -> None:
    """Interpret Workloads until interrupted."""

    async def run() -> None:
        stopping = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        async with serving({PATH: interpret}, cert_dir, host=bind_address, port=secure_port) as port:
            click.echo(f"Interpreting Workloads at https://{bind_address}:{port}{PATH}")
            await stopping.wait()

    try:
        asyncio.run(run())
    except OSError as error:
        raise click.ClickException(str(error)) from error


if __name__ == "__main__":
    main()

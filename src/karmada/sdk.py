"""All that programs outside of this package may import: for controllers, and for plug-ins of the scheduler.

These names stay from one minor version to the next; every other module may change in any commit.
"""

from __future__ import annotations

from karmada.kube.client.client import Client
from karmada.kube.client.http_transport import HttpTransport
from karmada.kube.client.kubeconfig import load_config
from karmada.kube.objects.errors import ApiError
from karmada.kube.objects.gvk import GVK, GVR
from karmada.kube.runtime.controller import ControllerOptions, Done, Reconciler, Result, Terminal, Watch
from karmada.kube.runtime.keys import Key
from karmada.kube.runtime.manager import Manager
from karmada.scheduler.assignment import Division
from karmada.scheduler.estimators.protocol import EstimateRequest, LocalEstimator, RemoteEstimator
from karmada.scheduler.filters.protocol import BindingFilter, ClusterFilter
from karmada.scheduler.fleet import Facet
from karmada.scheduler.ranking import Score

__all__ = [
    "GVK",
    "GVR",
    "ApiError",
    "BindingFilter",
    "Client",
    "ClusterFilter",
    "ControllerOptions",
    "Division",
    "Done",
    "EstimateRequest",
    "Facet",
    "HttpTransport",
    "Key",
    "LocalEstimator",
    "Manager",
    "Reconciler",
    "RemoteEstimator",
    "Result",
    "Score",
    "Terminal",
    "Watch",
    "load_config",
]

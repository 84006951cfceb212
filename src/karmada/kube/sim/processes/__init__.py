"""Pods whose image is known run as processes of this machine: the process runtime behind the simulated kubelet."""

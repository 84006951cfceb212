"""Simulated clusters: the embedded API server with controllers, scheduler and kubelets, without real machines.

Controllers, scheduler and kubelet are reconcilers over a Client, so the same code also runs against a real API server.
"""

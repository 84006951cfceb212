"""Simulated clusters: the embedded API server with everything that makes a cluster of it, and no machine behind it.

Controllers, scheduler and kubelet are reconcilers over a Client, so the same code also runs against a real API server.
"""

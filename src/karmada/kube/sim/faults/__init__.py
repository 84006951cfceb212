"""Fault injection into simulated clusters: faults as data, injected at a gate or into the cluster, and healed."""

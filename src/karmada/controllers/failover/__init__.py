"""Failover: taints from policies, evictions from failing clusters, the end of evictions, and remedies."""

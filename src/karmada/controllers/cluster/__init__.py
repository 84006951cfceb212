"""The life cycle of a Cluster: execution namespace, taints, deletion, and the monitor of its heartbeats."""

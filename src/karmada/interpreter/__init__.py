"""What the control plane must know of a resource: its replicas, status, health and dependencies."""

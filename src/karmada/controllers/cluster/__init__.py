"""The life of a cluster in the control plane: its execution namespace, taints and end, and whether it still lives."""

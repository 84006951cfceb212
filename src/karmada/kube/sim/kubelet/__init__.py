"""The simulated kubelets of a cluster: pods have a status, and no processes."""

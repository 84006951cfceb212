"""The simulated kubelets of a cluster: they run pods on paper."""

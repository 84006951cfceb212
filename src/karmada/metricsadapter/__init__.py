"""The metrics APIs of all members as one: metrics.k8s.io and custom.metrics.k8s.io of the control plane."""

"""What is known of kinds that operators outside Kubernetes bring: one module for each API group."""

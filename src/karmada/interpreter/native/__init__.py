"""What is known of Kubernetes' own kinds (and of ServiceImport): one module for each operation, by kind in tables."""

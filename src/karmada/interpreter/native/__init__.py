"""What is known of Kubernetes' own kinds (and of ServiceImport): one module for each question, by kind in tables."""

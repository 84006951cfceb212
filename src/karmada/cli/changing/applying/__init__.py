"""What `karmadactl apply` does, step by step."""

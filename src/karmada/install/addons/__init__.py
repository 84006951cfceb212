"""Optional components of an installed control plane: what they consist of, and how they are enabled and disabled."""

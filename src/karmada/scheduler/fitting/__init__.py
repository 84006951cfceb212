"""What would make a resource fit that does not: the smallest changes, found by trying them on the algorithm itself."""

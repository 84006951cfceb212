"""Suggestions for a resource that does not fit: the smallest changes, found by trying them on the algorithm itself."""

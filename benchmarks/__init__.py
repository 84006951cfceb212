"""Measurements of the API server, each in a process of its own on a core of its own: `make bench`."""

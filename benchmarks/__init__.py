"""Measurements that can be repeated, compared and plotted: `make bench`, `python -m benchmarks list`."""

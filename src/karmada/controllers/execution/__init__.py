"""Execution: Works become objects in member clusters."""

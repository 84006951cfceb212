"""The scheduler of a simulated cluster."""

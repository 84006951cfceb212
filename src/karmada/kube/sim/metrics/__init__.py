"""The load of simulated pods and the metrics APIs that show it."""

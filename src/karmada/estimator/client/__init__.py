"""The estimators of other processes: where they are, connections to them, and calls."""

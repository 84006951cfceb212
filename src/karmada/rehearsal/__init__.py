"""A fleet in memory, on a clock of its own: the real control plane over simulated members, for trying out failures."""

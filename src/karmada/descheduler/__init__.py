"""The descheduler: replicas that found no node leave their cluster, so that the scheduler places them elsewhere."""

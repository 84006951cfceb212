"""How many more replicas a cluster has room for."""

"""The cluster status controller: whether each member cluster is alive, what it serves, and how much capacity it has."""

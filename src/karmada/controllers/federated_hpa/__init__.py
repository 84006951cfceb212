"""FederatedHPAs: replicas of a template that follow the load of its pods in all clusters."""

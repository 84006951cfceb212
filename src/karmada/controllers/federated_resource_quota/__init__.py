"""FederatedResourceQuotas: limits of a namespace over all clusters, and what is used of them."""

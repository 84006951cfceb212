"""What Karmada adds to the API server: its kinds, the clusters with their proxy, and the admission of both."""

"""Where resources go: filters, scores, spreading, division of replicas, and estimates of room."""

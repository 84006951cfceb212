"""Pull mode: a cluster registers itself with a bootstrap token, and an agent in it does the work."""

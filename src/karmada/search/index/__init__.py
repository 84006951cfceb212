"""Full-text search over the cached objects of all members."""

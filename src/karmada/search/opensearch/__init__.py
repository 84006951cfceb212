"""Cached objects in OpenSearch, for registries that name one as their backend store."""

"""Services over several clusters: the EndpointSlices of one cluster reach others."""

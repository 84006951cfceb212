"""One endpoint for all clusters: `proxying/{any}/proxy/…` as an API server whose objects are those of all members."""

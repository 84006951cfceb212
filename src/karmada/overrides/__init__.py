"""Override policies: how a resource differs from its template in one cluster."""

"""Propagation, from objects in a control plane to objects in its members; on our control plane or on anybody's."""

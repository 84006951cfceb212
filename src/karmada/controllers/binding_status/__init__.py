"""Binding status: what all the clusters of a binding report, in one place."""

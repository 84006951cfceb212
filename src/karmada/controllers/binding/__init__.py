"""Binding: one Work for every cluster a binding names."""

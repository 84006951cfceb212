"""Defaults and rules of Karmada's kinds: one implementation, for the embedded server and as a webhook for others."""

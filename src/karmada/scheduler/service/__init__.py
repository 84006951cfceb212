"""The scheduler at work: which bindings are looked at and when, and how a decision is written down."""

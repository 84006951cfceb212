"""The scheduler as a controller: which bindings are scheduled and when, and how a decision is written."""

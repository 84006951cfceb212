"""Template status: the status of a template is what its copies make together."""

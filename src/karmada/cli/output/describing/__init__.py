"""What `karmadactl describe` says of an object: one describer for every kind that deserves more than its fields.

`kinds` has the table from kind to describer. A describer writes lines of tab-separated cells onto a `Sheet`, which
aligns them in the end; what it wants to know beyond the object itself it asks of `Around`.
"""

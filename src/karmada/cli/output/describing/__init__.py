"""The output of `karmadactl describe`: one describer per kind, and a generic one.

`kinds` has the table from kind to describer. A describer writes lines of tab-separated cells onto a `Sheet`, which
aligns them in the end; related objects come from `Around`.
"""

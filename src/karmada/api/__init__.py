"""The kinds of the control plane: one module per API group, and what is made from them (CRDs, served resources)."""

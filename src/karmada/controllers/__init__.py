"""The controllers of the control plane, one module or small package for each, named after it."""

"""The controllers of a simulated cluster, one file per controller."""

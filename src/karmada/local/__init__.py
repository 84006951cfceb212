"""A control plane with members on this machine, out of one folder: started, looked at and stopped.

Each program is a process of its own; this package starts them, has the members join, and knows how to find them again.
"""

"""A local environment: a control plane with members on this machine, with all its state in one folder.

Each program is a process of its own. This package starts, inspects and stops them, and joins the members.
"""

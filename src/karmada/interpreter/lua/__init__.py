"""Lua in which people write what the control plane must know of their kinds: its sandbox, and its layer."""

"""The objects of all members at hand: caches of what ResourceRegistries select, and what reads from them."""

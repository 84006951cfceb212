"""What can go wrong with a simulated cluster, on request: described as data, let in at a gate, taken back again."""

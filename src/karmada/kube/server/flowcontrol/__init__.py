"""API Priority and Fairness: how the seats of the server are shared among its users."""

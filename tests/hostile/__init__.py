"""What a tenant may do to everybody else: the cost of large objects, of attacks one by one, and of all at once."""

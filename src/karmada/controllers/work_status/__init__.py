"""Work status: how the objects of Works are doing in their clusters."""

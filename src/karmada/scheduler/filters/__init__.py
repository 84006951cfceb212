"""Which clusters a resource can go to at all."""

"""Which of the clusters a resource can go to are better for it."""

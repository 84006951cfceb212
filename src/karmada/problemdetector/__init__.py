"""Problems of a cluster that only its own nodes see: whether they can resolve the names of Services."""

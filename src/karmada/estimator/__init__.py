"""The accurate estimator: how many replicas fit on the nodes of one member cluster."""

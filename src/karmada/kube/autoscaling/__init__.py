"""What every autoscaler does with metrics: grouping of pods, replicas, stabilisation, rates, limits, conditions."""

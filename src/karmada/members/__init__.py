"""The member clusters, as the control plane reaches them: one client and one set of informers for each."""

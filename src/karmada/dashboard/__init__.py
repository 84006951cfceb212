"""The dashboard: pages about a control plane and its members, read through the API as whoever is logged in."""

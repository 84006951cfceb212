"""How a cluster becomes a member and stops being one: steps over two API servers, the control plane's and its own."""

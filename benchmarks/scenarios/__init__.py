"""One file a scenario; the registry knows all of them."""

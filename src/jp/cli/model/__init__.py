"""`jp model`."""

"""`jp config`: settings, and where each comes from."""

"""Programs that are run to their end."""

"""What to leave out of a context, for any host. Pure; imports nothing of jp but errors."""

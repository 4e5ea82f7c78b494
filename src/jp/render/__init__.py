"""A turn on a terminal, in a pipe, as JSON."""

"""A query: prepared, run, and reported."""

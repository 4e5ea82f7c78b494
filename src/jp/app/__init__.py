"""Use cases: what a user can do with jp, as functions with plain arguments and typed results."""

"""`jp query`: what the command line asks, what it takes, the turn, and how it ended."""

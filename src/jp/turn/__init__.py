"""One turn: decide, ask, run tools, record."""

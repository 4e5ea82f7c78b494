"""The `jp` scheme: turns of other conversations."""

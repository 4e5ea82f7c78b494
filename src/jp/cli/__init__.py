"""Commands, wiring, exit codes."""

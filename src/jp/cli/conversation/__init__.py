"""`jp conversation`: one module a command."""

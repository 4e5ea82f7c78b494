"""Completion in shells: the command that prints the script of a shell, and the candidates that the script asks for."""

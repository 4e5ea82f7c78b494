"""The command line itself: its words, the table of commands, help, and Typer."""

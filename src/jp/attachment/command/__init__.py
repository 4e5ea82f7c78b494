"""The `cmd` scheme: the output of a program."""

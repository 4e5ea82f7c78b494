"""The terminal and the standard streams: signals, questions, the picker, exit codes."""

"""The picker: a list of conversations on the terminal, narrowed by typing."""

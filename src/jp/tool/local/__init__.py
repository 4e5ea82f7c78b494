"""Tools that are programs: those that the configuration declares, and the shell."""

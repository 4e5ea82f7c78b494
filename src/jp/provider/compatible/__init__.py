"""Any server that speaks Chat Completions, as the user's configuration describes it."""

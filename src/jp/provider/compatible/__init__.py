"""Any other server that speaks Chat Completions."""

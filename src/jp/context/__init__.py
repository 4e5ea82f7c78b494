"""Context economy for any host: budgets, evidence, summaries, secrets. Pure; imports nothing of jp but errors."""

"""The model table: what is known of each provider's models without asking anybody, and what their tokens cost."""

"""Structured output: what the user wants, whether an answer fits it, and how it is shown."""

"""Structured output: whether a schema can be used, and whether an answer fits it."""

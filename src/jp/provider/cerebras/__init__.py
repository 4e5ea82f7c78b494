"""Cerebras: Chat Completions with its own words for reasoning."""

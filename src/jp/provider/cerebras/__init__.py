"""Cerebras: open models behind Chat Completions."""
